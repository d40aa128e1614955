"""Physics-informed network for u' = -2u + 3 cos(3t), u(0) = 1."""
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)

T_END = 3.0
N_COLLOCATION = 128
STEPS = 2000


def exact(t):
    a, b = 2.0 * 3 / 13, 3.0 * 3 / 13
    return (1 - a) * torch.exp(-2 * t) + a * torch.cos(3 * t) + b * torch.sin(3 * t)


class Surrogate(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1))

    def forward(self, t):
        return self.net(t)


def residual(model, t):
    t = t.requires_grad_(True)
    u = model(t)
    du_dt = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    return du_dt + 2 * u - 3 * torch.cos(3 * t)


def relative_error(model, t):
    model.eval()
    with torch.no_grad():
        return ((model(t) - exact(t)).norm() / exact(t).norm()).item()


model = Surrogate()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
generator = torch.Generator().manual_seed(1)
t_zero, u_zero = torch.zeros(1, 1), torch.ones(1, 1)
t_check = torch.linspace(0, T_END, 301).unsqueeze(1)
history = []

for step in range(1, STEPS + 1):
    model.train()
    t = torch.rand(N_COLLOCATION, 1, generator=generator) * T_END
    loss_ode = residual(model, t).pow(2).mean()
    loss_ic = (model(t_zero) - u_zero).pow(2).mean()
    loss = loss_ode + 10 * loss_ic
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    history.append(loss.item())
    if step % 400 == 0:
        print(f"step {step:5d}  loss {np.mean(history[-100:]):.5f}  "
              f"ic {loss_ic.item():.2e}  relative L2 error {relative_error(model, t_check):.4f}")
