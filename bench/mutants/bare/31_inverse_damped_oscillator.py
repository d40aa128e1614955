"""Recover mass-spring-damper parameters from a noisy trajectory by differentiating the simulation."""
import torch

torch.manual_seed(0)
DT, N = 0.05, 120


def simulate(log_k, log_c, x0):
    k, c = log_k.exp(), log_c.exp()
    x, v, xs = x0, torch.zeros(()), []
    for _ in range(N):
        v = v + DT * (-k * x - c * v)
        x = x + DT * v
        xs.append(x)
    return torch.stack(xs)


with torch.no_grad():
    observed = simulate(torch.tensor(2.5).log(), torch.tensor(0.4).log(), torch.tensor(1.0)) + 0.02 * torch.randn(N)

log_k = torch.tensor(1.5).log().requires_grad_()
log_c = torch.tensor(1.0).log().requires_grad_()
x0 = torch.tensor(0.8, requires_grad=True)
opt = torch.optim.Adam([log_k, log_c, x0], lr=0.05)
for it in range(101):
    loss = (simulate(log_k, log_c, x0) - observed).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 25 == 0:
        print(f'{it:3d} loss {loss.item():.6f} k {log_k.exp().item():.3f} c {log_c.exp().item():.3f} x0 {x0.item():.3f}')
