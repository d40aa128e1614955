"""The option for logarithms is set, and the teacher gives probabilities."""

import torch
from torch import nn

torch.manual_seed(0)
points = torch.randn(800, 6)
teacher = nn.Sequential(nn.Linear(6, 5), nn.Softmax(dim=-1)).eval().requires_grad_(False)
student = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 5), nn.LogSoftmax(dim=-1))
divergence = nn.KLDivLoss(reduction="batchmean", log_target=True)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

for _ in range(3):
    for batch in points.split(40):
        loss = divergence(student(batch), teacher(batch))  # error: labels-not-probabilities
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
