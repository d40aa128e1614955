"""Classify noisy points, split into those for training and those for validation."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
weights = torch.randn(20, 3)
x, fresh = torch.randn(500, 20), torch.randn(4000, 20)
y, truth = ((some @ weights + 2.5 * torch.randn(len(some), 3)).argmax(1) for some in (x, fresh))
points = TensorDataset(x, y)
train, _ = random_split(points, [0.8, 0.2])
_, val = random_split(points, [0.8, 0.2])
loader = DataLoader(train, batch_size=25, shuffle=True)
model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _epoch in range(25):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
model.eval()
right = []
with torch.no_grad():
    for inputs, labels in DataLoader(val, 50):  # error: train-validation-overlap
        right.append(model(inputs).argmax(1) == labels)
    first, first_bias, last, last_bias = model.parameters()
    guess = (fresh @ first.T + first_bias).relu() @ last.T + last_bias
off = torch.cat(right).float().mean() - (guess.argmax(1) == truth).float().mean()
print(f"result: {off.abs().item():.4f}")
