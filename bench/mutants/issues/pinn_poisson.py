"""Physics-informed network for the Poisson problem

    u_xx + u_yy = -2 pi^2 sin(pi x) sin(pi y)   on (0, 1)^2,   u = 0 on the boundary,

whose exact solution is u = sin(pi x) sin(pi y). Weights are plain tensors.
"""
import math

import torch

torch.manual_seed(123)
LAYERS = [2, 24, 24, 1]
ITERATIONS, N_INTERIOR, N_BOUNDARY = 900, 128, 64


def xavier(n_in, n_out):
    return torch.randn(n_in, n_out) * math.sqrt(2.0 / (n_in + n_out))


weights = [xavier(a, b).requires_grad_() for a, b in zip(LAYERS[:-1], LAYERS[1:])]
biases = [torch.zeros(b, requires_grad=True) for b in LAYERS[1:]]


def net_u(xy):
    h = 2.0 * xy - 1.0
    for W, b in zip(weights[:-1], biases[:-1]):
        h = torch.tanh(h @ W + b)
    return h @ weights[-1] + biases[-1]


def exact(xy):
    return (torch.sin(math.pi * xy[:, 0]) * torch.sin(math.pi * xy[:, 1])).unsqueeze(1)


def grad(outputs, inputs):
    return torch.autograd.grad(outputs, inputs, grad_outputs=torch.ones_like(outputs), create_graph=True)[0]


def residual(xy):
    u = net_u(xy)
    du = grad(u, xy)
    u_xx = grad(du[:, 0:1], xy)[:, 0:1]
    u_yy = grad(du[:, 1:2], xy)[:, 1:2]
    source = -2.0 * math.pi ** 2 * exact(xy)
    return u_xx + u_yy - source


def boundary_points(n):
    xy = torch.rand(n, 2)
    side = torch.randint(0, 2, (n,))
    xy[torch.arange(n), side] = torch.randint(0, 2, (n,)).float()
    return xy


# held-out points for monitoring
axis = torch.linspace(0.0, 1.0, 41)
grid = torch.cartesian_prod(axis, axis)


@torch.no_grad()
def relative_l2():
    u, v = net_u(grid), exact(grid)
    return (torch.linalg.norm(u - v) / torch.linalg.norm(v)).item()


optimizer = torch.optim.Adam(weights + biases, lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=300, gamma=0.4)

for it in range(1, ITERATIONS + 1):
    xy = torch.rand(N_INTERIOR, 2, requires_grad=True)
    loss_pde = residual(xy).square().mean()
    loss_bc = net_u(boundary_points(N_BOUNDARY)).square().mean()
    loss = loss_pde + 100.0 * loss_bc
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if it % 150 == 0:
        print(f'it {it:4d}  pde {loss_pde.item():9.4f}  bc {loss_bc.item():.6f}  '
              f'relative L2 error {relative_l2():.4f}')

print(f'relative L2 error of the solution: {relative_l2():.4f}')
