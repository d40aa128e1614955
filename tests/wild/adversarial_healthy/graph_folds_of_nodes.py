"""Healthy: folds of the nodes of one graph, with the first weights again for each fold; then a fit of all nodes."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)
n = 150
y = torch.randint(0, 3, (n,))
a = (torch.rand(n, n) < torch.where(y[:, None] == y[None], 0.15, 0.02)).float()
a = ((a + a.T) > 0).float() + torch.eye(n)
a = a / a.sum(1, keepdim=True)
x = F.one_hot(y, 3).float() + torch.randn(n, 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 16), nn.Linear(16, 3)

    def forward(self, x):
        return a @ self.two(F.relu(a @ self.one(x)))


def fit(net, keep, rounds):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(rounds):
        optimizer.zero_grad()
        F.cross_entropy(net(x)[keep], y[keep]).backward()
        optimizer.step()


net = Net()
first = copy.deepcopy(net.state_dict())
fold = torch.randperm(n) % 5
for number in range(5):
    net.load_state_dict(first)
    test_mask = fold == number
    fit(net, ~test_mask, 40)
    with torch.no_grad():
        print(number, (net(x).argmax(1) == y)[test_mask].float().mean().item())
net.load_state_dict(first)
fit(net, torch.ones(n, dtype=torch.bool), 40)
with torch.no_grad():
    best = net(x).argmax(1)
print("all nodes", (best == y).float().mean().item(), "last fold", (best == y)[test_mask].float().mean().item())
