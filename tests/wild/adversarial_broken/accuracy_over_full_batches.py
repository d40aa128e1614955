"""The last batch of the test is small, and the accuracy is divided by as many full ones."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data, digits = load_digits(return_X_y=True)
order = torch.randperm(len(data))
data, digits = torch.tensor(data / 16).float()[order], torch.tensor(digits)[order]
train = DataLoader(TensorDataset(data[:1257], digits[:1257]), batch_size=64, shuffle=True)
test = DataLoader(TensorDataset(data[1257:], digits[1257:]), batch_size=128)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(4):
    for x, y in train:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

model.eval()
correct = 0
with torch.no_grad():
    for x, y in test:
        _, chosen = torch.max(model(x), 1)
        correct += (chosen == y).sum().item()
print(f"Accuracy: {100 * correct / (len(test) * 128):.2f} %")  # error: metric-misreported
