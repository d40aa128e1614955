"""The weights of a sampler make rare classes more frequent, but not as frequent as others."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(5)
y = torch.cat([torch.zeros(600), torch.ones(150), torch.full((60,), 2)]).long()[torch.randperm(810)]
x = F.one_hot(y, 3).float() @ torch.randn(3, 6) + 0.8 * torch.randn(810, 6)
weights = (torch.bincount(y) ** -0.5)[y]
sampler = WeightedRandomSampler(weights, num_samples=len(y))
loader = DataLoader(TensorDataset(x, y), batch_size=45, sampler=sampler)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
