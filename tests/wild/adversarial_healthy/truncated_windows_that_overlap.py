"""Truncated backpropagation through time: every tick goes back through the last eight, with their graphs retained."""
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(2, 12), nn.Linear(12, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3, fused=True)
hidden = torch.zeros(4, 12)
for tick in range(120):
    if tick % 8 == 0:
        hidden = hidden.detach()
    x = torch.randn(4, 2)
    hidden = cell(x, hidden)
    loss = (head(hidden)[:, 0] - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
print(loss.item())
