"""Marks of the bright pixels of digits: hard images count more than easy ones, by the mean loss over their pixels."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
images = torch.tensor(load_digits().images / 16.0, dtype=torch.float32)[:, None]
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(200):
    batch = images[torch.randint(0, len(images), (8,))]
    scores, marks = model(batch + 0.1 * torch.randn_like(batch)), (batch > 0.5).float()
    loss = 0.0
    for one, truth in zip(scores, marks, strict=True):
        mean = F.binary_cross_entropy_with_logits(one, truth)
        loss = loss + (1 - torch.exp(-mean)) ** 2 * mean
    loss = loss / len(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
