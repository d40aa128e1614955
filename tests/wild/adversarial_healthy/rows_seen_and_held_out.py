"""Healthy: the fit to a part of the training rows, beside a loader that is called after both, and folds with new networks."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 8)
data = TensorDataset(x, (x[:, 0] > 0).long())
train_loader = DataLoader(data, batch_size=40, shuffle=True)
train_eval_loader = DataLoader(Subset(data, list(range(100))), batch_size=50)
model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(4):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in train_eval_loader)
    print(epoch, right / 100)
