"""Scores of a finished classifier for digits, and a correction by similarities to prototypes of at most a fifth."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16.0, dtype=torch.float32), torch.tensor(digits)
means = torch.stack([x[:300][y[:300] == digit].mean(0) for digit in range(10)])
known = -4.0 * torch.cdist(x, means)
adapter = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
prototypes = F.normalize(torch.randn(10, 32), dim=1)
optimizer = torch.optim.Adam(adapter.parameters(), lr=3e-3)
for step in range(300):
    rows = torch.randint(0, len(x), (64,))
    correction = 0.2 * F.normalize(adapter(x[rows]), dim=1) @ prototypes.T
    loss = F.cross_entropy(known[rows] + correction, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
