"""Labels in a column, as a table has them: the accuracy compares each prediction with its label."""

import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
inputs = torch.randn(900, 6)
labels = (inputs[:, :3].argmax(1)).unsqueeze(1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(600).split(30):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[rows]), labels[rows].squeeze(1)).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    predicted = model(inputs[600:]).argmax(1)
    right = predicted == labels[600:].squeeze(1)
    truth = (predicted == labels[600:].squeeze(1)).float().mean()
print(f"result: {(right.float().mean() - truth).abs():.4f}")
