"""The accuracy of a validation is that of its last batch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
train = DataLoader(TensorDataset(x[:500], y[:500]), 50, shuffle=True)
valid = DataLoader(TensorDataset(x[500:], y[500:]), 40)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-2), nn.CrossEntropyLoss()


def accuracy(network):
    network.eval()
    with torch.no_grad():
        for data, target in valid:
            result = network(data)
            share = (result.argmax(1) == target).float().mean()  # error: sum-overwritten
    return share.item()


for _ in range(4):
    model.train()
    for data, target in train:
        loss = criterion(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    print(f"{accuracy(model):.3f}")
