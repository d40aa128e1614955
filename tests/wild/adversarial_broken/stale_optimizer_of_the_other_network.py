"""Two networks of one kind are compared; the optimizer of the second one was given the first one's training loop."""
import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


torch.manual_seed(0)
narrow, wide = network(), network()
optimizer = torch.optim.Adam(wide.parameters(), lr=1e-2)  # error: optimizer-holds-stale-parameters
for step in range(80):
    x = torch.randn(16, 4)
    y = (x.sum(1) > 0).long()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(narrow(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
