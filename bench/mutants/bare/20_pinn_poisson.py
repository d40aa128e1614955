"""u'' = -pi^2 sin(pi x), u(0) = u(1) = 0, with a network of plain tensors."""
import math
import torch

torch.manual_seed(0)
sizes = [1, 24, 24, 1]
weights = []
for m, n in zip(sizes, sizes[1:]):
    weights.append((torch.randn(m, n) * math.sqrt(1 / m)).requires_grad_())
    weights.append(torch.zeros(n, requires_grad=True))


def u(x):
    h = x
    for i in range(0, len(weights), 2):
        h = h @ weights[i] + weights[i + 1]
        if i < len(weights) - 2:
            h = torch.tanh(h)
    return h


def residual(x):
    y = u(x)
    dy = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
    d2y = torch.autograd.grad(dy.sum(), x, create_graph=True)[0]
    return d2y + math.pi ** 2 * torch.sin(math.pi * x)


boundary = torch.tensor([[0.0], [1.0]])
opt = torch.optim.Adam(weights, lr=5e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.996)
for it in range(501):
    x = torch.rand(64, 1, requires_grad=True)
    loss = residual(x).pow(2).mean() + 50 * u(boundary).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if it % 125 == 0:
        print(f'{it:4d} loss {loss.item():.5f}')

grid = torch.linspace(0, 1, 101)[:, None]
with torch.no_grad():
    error = (u(grid) - torch.sin(math.pi * grid)).abs().max()
print(f'largest error {error.item():.4f}')
