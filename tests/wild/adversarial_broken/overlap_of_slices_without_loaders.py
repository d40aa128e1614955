"""Validation rows are a slice of the training rows, and the rest of the table is never read."""

import torch
from torch import nn

torch.manual_seed(0)
table, answers = torch.randn(500, 6), torch.randint(0, 2, (500,))
inputs, labels = table[:400], answers[:400]
held_out, truth = table[:100], answers[:100]  # error: train-validation-overlap
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    for index in torch.randperm(400).split(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[index]), labels[index]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, (model(held_out).argmax(1) == truth).float().mean().item())
    model.train()
