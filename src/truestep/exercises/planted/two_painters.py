"""Draw digits with two networks: one draws, and the other one judges."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import one_hot, softplus
from torch.utils.data import DataLoader, TensorDataset

NOISE = 16

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

pixels, labels = load_digits(return_X_y=True)
images, labels = torch.tensor(pixels, dtype=torch.float32) / 8 - 1, torch.tensor(labels)
loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True, drop_last=True)


def network(inputs, outputs, *last):
    return nn.Sequential(nn.Linear(inputs, 128), nn.LeakyReLU(0.2), nn.Linear(128, outputs), *last)


judge = network(64, 10)  # reads the drawings at the end
generator = network(NOISE + 10, 64, nn.Tanh())
discriminator = network(64 + 10, 1)
optimizer_j = torch.optim.Adam(judge.parameters(), lr=2e-3)
optimizer_g = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))


def draw(digits):
    return generator(torch.cat([torch.randn(len(digits), NOISE), one_hot(digits, 10).float()], dim=1))


def believed(pictures, digits):
    return discriminator(torch.cat([pictures, one_hot(digits, 10).float()], dim=1))


for epoch in range(1, 31):
    for x, y in loader:
        optimizer_j.zero_grad()
        nn.functional.cross_entropy(judge(x), y).backward()
        optimizer_j.step()

        drawn = draw(y)
        optimizer_d.zero_grad()
        (softplus(-believed(x, y)) + softplus(believed(drawn.detach(), y))).mean().backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        loss = softplus(-believed(drawn, y)).mean()
        loss.backward()
        optimizer_g.step()
    if epoch % 6 == 0:
        print(f"epoch {epoch}: loss of the drawings {loss.item():.3f}")

requested = torch.arange(10).repeat(50)
with torch.no_grad():
    read = judge(draw(requested)).argmax(dim=1)
print(f"drawings read as requested: {(read == requested).float().mean():.4f}")
