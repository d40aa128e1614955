"""Classify points that are distorted at random for training."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
x = torch.randn(1500, 6)
y = (x @ torch.randn(6, 4)).argmax(1)


class Points(Dataset):
    def __init__(self, noise):
        self.noise = noise

    def __len__(self):
        return len(x)

    def __getitem__(self, index):
        return x[index] + self.noise * torch.randn(6), int(y[index])


disturbed = Points(noise=0.5)
train = DataLoader(Subset(disturbed, range(1000)), batch_size=25, shuffle=True)
val = DataLoader(Subset(disturbed, range(1000, 1500)), batch_size=50)
model = nn.Linear(6, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for _epoch in range(3):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    right = torch.cat([model(inputs).argmax(1) == y for inputs, y in val])  # error: augmentation-in-evaluation
print(f"result: {right.float().mean().item():.4f}")
