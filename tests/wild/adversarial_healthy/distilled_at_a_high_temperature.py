"""Similarities to a bank are distilled at a high temperature: the loss has a large constant part, and falls slowly."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
TEMPERATURE = 10.0
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16.0, dtype=torch.float32), torch.tensor(digits)
teacher, student = nn.Linear(64, 32), nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
bank, head = F.normalize(torch.randn(200, 32), dim=1), nn.Linear(32, 10)
learning = torch.optim.Adam([*teacher.parameters(), *head.parameters()], lr=1e-2)
for _step in range(100):
    rows = torch.randint(0, len(x), (64,))
    learning.zero_grad()
    F.cross_entropy(head(teacher(x[rows])), y[rows]).backward()
    learning.step()
teacher.requires_grad_(False).eval()
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
for _step in range(320):
    inputs = x[torch.randint(0, len(x), (64,))]
    with torch.no_grad():
        shares = (F.normalize(teacher(inputs), dim=1) @ bank.T / TEMPERATURE).softmax(1)
    scores = F.normalize(student(inputs), dim=1) @ bank.T / TEMPERATURE
    loss = F.cross_entropy(scores, shares) * TEMPERATURE**2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
