"""Views of digits are brought together, the others apart, by a hand-written loss of exponentials."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
t = 0.1
for step in range(200):
    batch = x[torch.randint(0, len(x), (64,))]
    a, b = (F.normalize(encoder(batch + 0.2 * torch.randn_like(batch)), dim=1) for _ in range(2))
    codes = torch.cat([a, b])
    scores = codes @ codes.T * t  # error: similarities-scaled-down
    others = (torch.exp(scores) * (1 - torch.eye(128))).sum(1)
    pairs = torch.exp((a * b).sum(1) * t).repeat(2)
    loss = -torch.log(pairs / others).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
