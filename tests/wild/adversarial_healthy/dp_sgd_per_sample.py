"""Differential privacy by hand: one backward per sample, clipped, summed, noised, divided."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
loader = DataLoader(TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,))), batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        sums = [torch.zeros_like(p) for p in model.parameters()]
        for xi, yi in zip(x, y):
            model.zero_grad()
            nn.functional.cross_entropy(model(xi[None]), yi[None]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for s, p in zip(sums, model.parameters()):
                s += p.grad
        for s, p in zip(sums, model.parameters()):
            p.grad = (s + 0.1 * torch.randn_like(s)) / len(x)
        optimizer.step()
        optimizer.zero_grad()
