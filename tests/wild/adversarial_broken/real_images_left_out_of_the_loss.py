"""The discriminator's loss of the real images is printed, and only that of the generated ones is differentiated."""

import torch
from torch import nn

torch.manual_seed(0)
real = torch.randn(512, 2) @ torch.tensor([[1.0, 0.5], [0.0, 1.0]]) + 2
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)


def step_of_discriminator(images, fakes):
    optimizer_d.zero_grad()
    of_real = criterion(discriminator(images), ones)  # error: loss-never-differentiated
    of_fake = criterion(discriminator(fakes.detach()), zeros)
    of_fake.backward()
    optimizer_d.step()
    return of_real.item() + of_fake.item()


for step in range(60):
    fakes = generator(torch.randn(64, 4))
    loss_d = step_of_discriminator(real[torch.randint(0, 512, (64,))], fakes)
    optimizer_g.zero_grad()
    loss_g = criterion(discriminator(fakes), ones)
    loss_g.backward()
    optimizer_g.step()
print(loss_d, loss_g.item())
