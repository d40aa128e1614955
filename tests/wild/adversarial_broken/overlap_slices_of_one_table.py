"""Rows are taken by two slices that were meant to meet, and overlap."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
table = rng.normal(size=(300, 9)).astype(np.float32)


class Rows(Dataset):
    def __init__(self, rows):
        self.inputs, self.targets = rows[:, :8], rows[:, 8:]

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.targets[index]


train_loader = DataLoader(Rows(table[:250]), batch_size=25, shuffle=True)
test_loader = DataLoader(Rows(table[-100:]), batch_size=50)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(3):
    for x, y in train_loader:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
model.eval()
total = 0.0
for x, y in test_loader:  # error: train-validation-overlap
    with torch.inference_mode():
        total += nn.functional.mse_loss(model(x), y, reduction="sum").item()
print(total / 100)
