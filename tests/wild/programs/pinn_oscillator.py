"""Healthy: physics-informed network: derivatives of the output by autograd.grad with create_graph, collocation inputs need grad."""
import torch
import torch.nn as nn


class FCN(nn.Module):
    "Defines a fully-connected network"

    def __init__(self, n_input, n_output, n_hidden, n_layers):
        super().__init__()
        self.fcs = nn.Sequential(nn.Linear(n_input, n_hidden), nn.Tanh())
        self.fch = nn.Sequential(*[nn.Sequential(nn.Linear(n_hidden, n_hidden), nn.Tanh()) for _ in range(n_layers - 1)])
        self.fce = nn.Linear(n_hidden, n_output)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(x)))


def exact(d, w0, t):
    "Analytical solution to the under-damped harmonic oscillator."
    w = (w0 ** 2 - d ** 2) ** 0.5
    phi = torch.atan(torch.tensor(-d / w))
    A = 1 / (2 * torch.cos(phi))
    return torch.exp(-d * t) * 2 * A * torch.cos(phi + w * t)


torch.manual_seed(123)
torch.set_num_threads(1)
d, w0 = 0.5, 3.0
mu, k = 2 * d, w0 ** 2

pinn = FCN(1, 1, 24, 2)
t_boundary = torch.tensor(0.0).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 2, 30).view(-1, 1).requires_grad_(True)
t_test = torch.linspace(0, 2, 200).view(-1, 1)
u_exact = exact(d, w0, t_test)
optimiser = torch.optim.Adam(pinn.parameters(), lr=1e-2)

for i in range(301):
    optimiser.zero_grad()
    lambda1, lambda2 = 1e-1, 1e-2

    # boundary loss
    u = pinn(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2

    # physics loss
    u = pinn(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + mu * dudt + k * u) ** 2)

    loss = loss1 + lambda1 * loss2 + lambda2 * loss3
    loss.backward()
    optimiser.step()
    if i % 100 == 0:
        with torch.no_grad():
            err = (pinn(t_test) - u_exact).abs().mean().item()
        print(f"{i:4d} loss {loss.item():.5f} mean error {err:.4f}")
