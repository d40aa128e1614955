"""A GAN in functions: the samples are detached for the discriminator, and the detached ones are judged for the generator too."""
import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizers = {
    "g": torch.optim.RMSprop(generator.parameters(), lr=5e-4),
    "d": torch.optim.RMSprop(discriminator.parameters(), lr=5e-4),
}
criterion = nn.BCEWithLogitsLoss()


def update(name, loss):
    optimizers[name].zero_grad(set_to_none=True)
    loss.backward()
    optimizers[name].step()  # error: step-without-backward


for _ in range(30):
    real = torch.randn(32, 2) + 3
    fake = generator(torch.randn(32, 4)).detach()
    update("d", criterion(discriminator(real), torch.ones(32, 1)) + criterion(discriminator(fake), torch.zeros(32, 1)))
    update("g", criterion(discriminator(fake), torch.ones(32, 1)))
print(discriminator(generator(torch.randn(8, 4))).mean().item() < 10)
