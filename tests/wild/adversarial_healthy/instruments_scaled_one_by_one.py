"""Two instruments with other gains: each is scaled with its own statistics on purpose, as its raw values show."""

import torch
from torch import nn

torch.manual_seed(3)
pattern = 2 * torch.randn(3, 5)


def measure(count, gain, offset):
    kind = torch.randint(0, 3, (count,))
    return (pattern[kind] + 0.8 * torch.randn(count, 5)) * gain + offset, kind


def scale(values):
    return (values - values.mean(0)) / values.std(0)


first_raw, first_kind = measure(900, torch.ones(5), torch.zeros(5))
second_raw, second_kind = measure(500, torch.tensor([3.0, 0.3, 5.0, 1.0, 2.5]), torch.tensor([8.0, 1.0, -4.0, 0.0, 2.0]))
first, second = scale(first_raw), scale(second_raw)
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(160):
    loss = nn.functional.cross_entropy(net(first), first_kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    print(f"second instrument {(net(second).argmax(1) == second_kind).float().mean():.3f}")
    print(f"as measured       {(net(second_raw).argmax(1) == second_kind).float().mean():.3f}")
