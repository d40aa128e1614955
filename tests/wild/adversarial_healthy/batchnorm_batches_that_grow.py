"""Batches that begin with two samples and grow; pairs that go through a net which other batches train too."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 6)
y = x[:, :2].sum(1, keepdim=True).sin()
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
size = 2
for epoch in range(4):
    for batch in torch.randperm(64).split(size):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[batch]), y[batch]).backward()
        optimizer.step()
    size *= 3

siamese = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(siamese.parameters(), 1e-3)
for step in range(30):
    optimizer.zero_grad()
    one, two = siamese(x[torch.randint(0, 400, (2,))]), siamese(x[torch.randint(0, 400, (32,))])
    (torch.cdist(one, two).mean() + siamese(x[:24]).pow(2).mean()).backward()
    optimizer.step()
print(model(x).std().item(), siamese(x).std().item())
