"""A GAN: the discriminator learns on detached images, the generator through the discriminator."""

import torch
from torch import nn, optim

generator = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
adversarial = nn.BCEWithLogitsLoss()
opt_g = optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))  # broken[optimizer-holds-stale-parameters]: opt_d = optim.Adam(nn.Linear(784, 256).parameters(), lr=2e-4)

for epoch in range(50):
    for images, _ in loader:
        real, fake = torch.ones(len(images), 1), torch.zeros(len(images), 1)
        made = generator(torch.randn(len(images), 64))

        opt_d.zero_grad()
        loss_d = (adversarial(discriminator(images.flatten(1)), real) + adversarial(discriminator(made.detach()), fake)) / 2
        loss_d.backward()
        opt_d.step()

        opt_g.zero_grad()
        loss_g = adversarial(discriminator(made), real)
        loss_g.backward()
        opt_g.step()
    print(epoch, loss_d.item(), loss_g.item())
