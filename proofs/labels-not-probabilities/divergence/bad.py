"""Distil the probabilities of a teacher into a smaller network."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.randn(3000, 10)
teacher = (x @ torch.randn(10, 8)).softmax(1)
student = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

for _epoch in range(15):
    for rows in torch.randperm(2000).split(100):
        said = student(x[rows]).log_softmax(1)
        loss = F.kl_div(said, teacher[rows], reduction="batchmean", log_target=True)  # error: labels-not-probabilities
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    said = student(x[2000:]).softmax(1)
agreed = (said.argmax(1) == teacher[2000:].argmax(1)).float().mean()
distance = 0.5 * (said - teacher[2000:]).abs().sum(1).mean()
print(f"agreement: {agreed:.4f}")
print(f"result: {distance:.4f}")
