"""Data that lies class by class, and is read well: whole, by samplers, shuffled, or sorted in an evaluation only."""
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
x = torch.randn(120, 4)
y = torch.arange(120) // 40
x[torch.arange(120), y] += 2
data = TensorDataset(x, y)
users = torch.arange(120) // 6
ratings = TensorDataset(users, torch.randint(0, 10, (120,)), torch.rand(120))

loaders = {
    "whole": DataLoader(data, batch_size=120),
    "weighted": DataLoader(data, batch_size=20, sampler=WeightedRandomSampler([1.0] * 120, 120)),
    "batches": DataLoader(data, batch_sampler=BatchSampler(RandomSampler(data), 20, drop_last=True)),
    "shuffled": DataLoader(data, batch_size=20, shuffle=True),
}
scored = DataLoader(data, batch_size=20)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for loader in loaders.values():
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
    losses = [nn.functional.cross_entropy(model(inputs), labels).item() for inputs, labels in scored]
    print(epoch, sum(losses) / len(losses))

factors = nn.ModuleList([nn.Embedding(20, 4), nn.Embedding(10, 4)])
optimizer = torch.optim.Adam(factors.parameters(), lr=0.05)
for epoch in range(3):
    for user, item, rating in DataLoader(ratings, batch_size=20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss((factors[0](user) * factors[1](item)).sum(1), rating)
        loss.backward()
        optimizer.step()
print(loss.item())
