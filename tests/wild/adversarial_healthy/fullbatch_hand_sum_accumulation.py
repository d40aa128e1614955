"""Exact batch gradient descent: sums over the loader, one step per epoch, a small lr made for the sum."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(200, 5)
y = X @ torch.randn(5, 1) + 0.1 * torch.randn(200, 1)
loader = DataLoader(TensorDataset(X, y), batch_size=25)
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)

for epoch in range(15):
    opt.zero_grad()
    total = 0.0
    for xb, yb in loader:
        loss = ((net(xb) - yb) ** 2).sum()
        loss.backward()
        total += loss.item()
    opt.step()
    print(epoch, total / len(X))
