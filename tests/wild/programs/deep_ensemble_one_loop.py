"""A deep ensemble trained in one loop: five networks, five optimizers, each with its own bootstrap batch; mixture mean and variance."""
import torch
from torch import nn

torch.manual_seed(0)


def make_net():
    return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))


def gaussian_nll(output, y):
    mean, raw = output[:, :1], output[:, 1:]
    variance = nn.functional.softplus(raw) + 1e-4
    return (0.5 * variance.log() + 0.5 * (y - mean) ** 2 / variance).mean()


x = torch.cat([torch.rand(60, 1) * 2 - 4, torch.rand(60, 1) * 2 + 2])
y = torch.sin(x) + 0.1 * torch.randn_like(x)
networks = [make_net() for _ in range(5)]
optimizers = [torch.optim.Adam(net.parameters(), lr=5e-3) for net in networks]

for step in range(150):
    losses = []
    for net, optimizer in zip(networks, optimizers):
        index = torch.randint(0, len(x), (40,))
        optimizer.zero_grad()
        loss = gaussian_nll(net(x[index]), y[index])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if step % 50 == 0:
        print(f"step {step} losses {[round(value, 3) for value in losses]}")

grid = torch.linspace(-6, 6, 61)[:, None]
with torch.no_grad():
    outputs = torch.stack([net(grid) for net in networks])
means, variances = outputs[..., 0], nn.functional.softplus(outputs[..., 1]) + 1e-4
mean = means.mean(0)
total = (variances + means ** 2).mean(0) - mean ** 2
near = (grid[:, 0].abs() > 2) & (grid[:, 0].abs() < 4)
print(f"standard deviation near the data {total[near].sqrt().mean():.3f}, elsewhere {total[~near].sqrt().mean():.3f}")
