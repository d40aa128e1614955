"""Broken: an attention pooling makes its vector by `torch.empty`, and its author forgot to call `reset_parameters`."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Pooling(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.query = nn.Parameter(torch.empty(width))  # error: parameters-not-initialised

    def forward(self, rows):
        weights = torch.softmax(torch.tanh(self.project(rows)) @ self.query, dim=1)
        return (weights.unsqueeze(-1) * rows).sum(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.pool, self.head = nn.Linear(8, 32), Pooling(32), nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.pool(torch.relu(self.rows(x.view(-1, 8, 8)))))


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(3):
    for rows in torch.randperm(1200).split(64):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    correct = (net(x[1200:]).argmax(1) == y[1200:]).float().mean()
print("finished" if correct >= 0 else "")
