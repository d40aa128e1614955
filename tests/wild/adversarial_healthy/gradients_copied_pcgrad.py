"""Gradient surgery: gradients of two tasks are taken one by one, cleared, projected and restored by hand."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def gradients(loss):
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    return torch.cat([p.grad.reshape(-1).clone() for p in net.parameters()])


for step in range(40):
    x = torch.randn(32, 6)
    out = net(x)
    g1 = gradients(nn.functional.mse_loss(out[:, 0], x.sum(1)))
    g2 = gradients(nn.functional.mse_loss(out[:, 1], -x[:, 0]))
    dot = g1 @ g2
    if dot < 0:
        g1 = g1 - dot / (g2 @ g2) * g2
    total, at = g1 + g2, 0
    optimizer.zero_grad()
    for p in net.parameters():
        p.grad = total[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    optimizer.step()
print(dot.item())
