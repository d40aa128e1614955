"""Healthy: cross entropy on the training nodes, entropy and a teacher's predictions on all nodes of the graph."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
n = 200
y = torch.randint(0, 3, (n,))
a = (torch.rand(n, n) < torch.where(y[:, None] == y[None], 0.12, 0.01)).float()
a = ((a + a.T) > 0).float() + torch.eye(n)
a = a / a.sum(1, keepdim=True)
x = F.one_hot(y, 3).float() + 0.8 * torch.randn(n, 3)
order = torch.randperm(n)
train_idx, val_idx, test_idx = order[:40], order[40:90], order[90:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 16), nn.Linear(16, 3)

    def forward(self, x):
        return a @ self.two(F.relu(a @ self.one(x)))


net = Net()
teacher = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(80):
    scores = net(x)
    loss = F.cross_entropy(scores[train_idx], y[train_idx])
    loss = loss - 0.1 * (scores.softmax(1) * scores.log_softmax(1)).sum(1).mean()
    with torch.no_grad():
        guess = teacher(x).softmax(1)
    loss = loss + 0.5 * F.mse_loss(scores.softmax(1), guess)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(teacher.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
    if epoch % 20 == 19:
        with torch.no_grad():
            best = net(x).argmax(1)
        shares = [(best[idx] == y[idx]).float().mean().item() for idx in (train_idx, val_idx, test_idx)]
        print(epoch, *(round(share, 3) for share in shares))
