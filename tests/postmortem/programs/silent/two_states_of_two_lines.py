import torch
from torch import nn

one, two = nn.GRUCell(4, 4), nn.GRUCell(4, 4)
a, b = torch.zeros(2, 4), torch.zeros(2, 4)
for step in range(3):
    a = one(torch.randn(2, 4), a)
    b = two(torch.randn(2, 4), b)
    (a + b).sum().backward()
