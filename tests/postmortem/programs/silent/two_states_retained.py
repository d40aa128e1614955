import torch
from torch import nn

one, two = nn.GRUCell(4, 4), nn.GRUCell(4, 4)
optimizer = torch.optim.SGD([*one.parameters(), *two.parameters()], lr=0.1)
a, b = torch.zeros(2, 4), torch.zeros(2, 4)
for step in range(3):
    a = one(torch.randn(2, 4), a)
    b = two(torch.randn(2, 4), b)
    optimizer.zero_grad()
    (a + b).sum().backward(retain_graph=True)
    optimizer.step()
