"""Distillation in which the teacher's logits are given as class probabilities."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
X = torch.randn(600, 10)
teacher = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 6))
nn.init.normal_(teacher[2].weight)
teacher.eval().requires_grad_(False)
student = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 6))
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)

for _step in range(30):
    x = X[torch.randint(len(X), (64,))]
    with torch.no_grad():
        wanted = teacher(x)
    loss = F.cross_entropy(student(x), wanted)  # error: labels-not-probabilities
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
