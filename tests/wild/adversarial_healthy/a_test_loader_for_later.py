"""Healthy: the fit to the training samples and to others is measured, and a loader for a final test is not read yet."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=30, shuffle=True)
val_loader = DataLoader(TensorDataset(x[300:450], y[300:450]), batch_size=50)
test_loader = DataLoader(TensorDataset(x[450:], y[450:]), batch_size=50)
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(model.parameters(), 5e-3)


def accuracy(loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in loader)
    model.train()
    return right / len(loader.dataset)


for epoch in range(4):
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    print(epoch, accuracy(train_loader), accuracy(val_loader))
