"""Rectified flow: straight velocities between noise and data, then a second network on pairs that the first one made (reflow)."""
import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(3, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 2))


def data(n):
    """Eight small clouds on a circle."""
    angle = torch.randint(0, 8, (n,)) * torch.pi / 4
    return 2 * torch.stack([angle.cos(), angle.sin()], 1) + 0.1 * torch.randn(n, 2)


def velocity(net, x, t):
    return net(torch.cat([x, t.expand(len(x), 1)], dim=1))


@torch.no_grad()
def integrate(net, x, steps):
    for k in range(steps):
        x = x + velocity(net, x, torch.tensor([[k / steps]])) / steps
    return x


def fit(net, pairs, steps=250, lr=3e-3):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        x0, x1 = pairs()
        t = torch.rand(len(x0), 1)
        loss = (velocity(net, torch.lerp(x0, x1, t), t) - (x1 - x0)).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


def error(net, steps):
    centres = torch.arange(8) * torch.pi / 4
    centres = 2 * torch.stack([centres.cos(), centres.sin()], 1)
    return torch.cdist(integrate(net, torch.randn(300, 2), steps), centres).min(1).values.mean().item()


torch.manual_seed(21)
first = network()
print("first flow", fit(first, lambda: (torch.randn(128, 2), data(128))))
noise = torch.randn(2000, 2)
images = integrate(first, noise, 20)


def stored():
    index = torch.randint(0, len(noise), (128,))
    return noise[index], images[index]


second = network()
second.load_state_dict(first.state_dict())
print("second flow", fit(second, stored, lr=1e-3))
print(f"distance to the clouds in 20 steps {error(first, 20):.3f}, in 2 steps {error(first, 2):.3f}, reflowed in 2 steps {error(second, 2):.3f}")
