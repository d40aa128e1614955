import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)

labels = torch.arange(800) % 4
pictures = (200 * torch.rand(800, 64).square()).to(torch.uint8)
for row, label in enumerate(labels.tolist()):  # a quarter of the picture is brighter
    pictures[row, 16 * label : 16 * label + 16] += 25


def prepared(pictures):
    return (pictures / 255 - 0.5) / 0.25


model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(20):
    model.train()
    for rows in torch.randperm(600).split(50):
        loss = nn.functional.cross_entropy(model(prepared(pictures[rows])), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    answers = model(pictures[600:] / 255).argmax(1)  # error: inputs-on-another-scale
print(f"result: {(answers == labels[600:]).float().mean():.4f}")
