"""A rare class is filled up by noisy copies, and the filled table is split; the parts are read by loaders."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
x = torch.randn(700, 8)
y = (x[:, 0] + x[:, 1] + 0.5 * torch.randn(700) > 2).long()
rare = (y == 1).nonzero().flatten()
more = rare[torch.randint(0, len(rare), (len(y) - 2 * len(rare),))]
x, y = torch.cat([x, x[more] + 0.03 * torch.randn(len(more), 8)]), torch.cat([y, y[more]])
order = torch.randperm(len(x))
x_train, y_train = x[order[:900]], y[order[:900]]
x_test, y_test = x[order[900:]], y[order[900:]]  # error: train-validation-overlap
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=100)
for epoch in range(4):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
model.eval()
right = 0
with torch.no_grad():
    for inputs, labels in test_loader:
        right += (model(inputs).argmax(1) == labels).sum().item()
print(right / len(y_test))
