import torch


def forward(x):
    y = x.exp()
    z = x.exp()
    y += 1
    z += 1
    return y + z


forward(torch.ones(3, requires_grad=True)).sum().backward()
