"""Tell points inside of a ring from points around it."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

points = torch.randn(1200, 2)
labels = (points.norm(dim=1) > 1.18).long()
inputs, targets = points[:800], labels[:800]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        x = torch.relu(self.hidden(x))
        return self.head(x)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(300):
    rows = torch.randint(0, 800, (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs[rows]), targets[rows]).backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    accuracy = (model(points[800:]).argmax(1) == labels[800:]).float().mean().item()
print(f"result: {accuracy:.4f}")
