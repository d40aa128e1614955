"""A Hamiltonian network: forces are gradients of a learned energy in training and evaluation, rolled out with a leapfrog integrator."""
import torch
import torch.nn as nn


class Hamiltonian(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.potential = nn.Sequential(nn.Linear(1, width), nn.Softplus(), nn.Linear(width, 1))
        self.kinetic = nn.Sequential(nn.Linear(1, width), nn.Softplus(), nn.Linear(width, 1))

    def field(self, q, p, create_graph):
        """Return dq/dt and dp/dt."""
        with torch.enable_grad():
            q, p = q.detach().requires_grad_(), p.detach().requires_grad_()
            energy = self.potential(q).sum() + self.kinetic(p).sum()
            dq, dp = torch.autograd.grad(energy, (q, p), create_graph=create_graph)
        return dp, -dq


def pendulum(n):
    q, p = 3 * torch.rand(n, 1) - 1.5, 3 * torch.rand(n, 1) - 1.5
    return q, p, p + 0.02 * torch.randn(n, 1), -torch.sin(q) + 0.02 * torch.randn(n, 1)


def roll_out(model, q, p, steps=60, dt=0.1):
    path = []
    for _ in range(steps):
        p = p + 0.5 * dt * model.field(q, p, create_graph=False)[1]
        q = q + dt * model.field(q, p, create_graph=False)[0]
        p = p + 0.5 * dt * model.field(q, p, create_graph=False)[1]
        path.append(torch.cat([q, p], dim=1))
    return torch.stack(path)


def main():
    torch.manual_seed(2)
    model = Hamiltonian()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    q, p, dq, dp = pendulum(512)
    for epoch in range(25):
        for i in torch.randperm(512).split(64):
            dq_hat, dp_hat = model.field(q[i], p[i], create_graph=True)
            loss = (dq_hat - dq[i]).pow(2).mean() + (dp_hat - dp[i]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 8 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    path = roll_out(model, torch.tensor([[1.0]]), torch.tensor([[0.0]]))
    energy = 0.5 * path[..., 1] ** 2 - torch.cos(path[..., 0])
    print(f"true energy along the learned path {energy.min().item():.3f} to {energy.max().item():.3f}")


main()
