"""Classify samples by their first feature beside their mean; one at a time after the training."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(1200, 8) + 3 * torch.randn(1200, 1)
y = (x[:, 0] - x.mean(1) > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(8, 32), nn.Linear(32, 2)

    def forward(self, x):
        x = x - x.mean(1, keepdim=True)
        return self.head(torch.relu(self.hidden(x)))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(300):
    chosen = torch.randint(0, 1000, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    right = [int(model(x[i : i + 1]).argmax() == y[i]) for i in range(1000, 1200)]
print(f"result: {sum(right) / len(right):.3f}")
