"""Random weights that stay: the target of random network distillation, an echo state, random features, a problem made by a network."""
import torch
from torch import nn

torch.manual_seed(0)


def mlp(*sizes):
    pairs = [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*pairs[:-1])


class Curiosity(nn.Module):
    """The novelty of a state is the error of a network that learns the output of a random one."""

    def __init__(self):
        super().__init__()
        self.target, self.predictor = mlp(6, 32, 32, 8), mlp(6, 32, 32, 8)
        self.target.requires_grad_(False)

    def forward(self, x):
        return (self.predictor(x) - self.target(x)).square().mean(1)


class EchoState(nn.Module):
    def __init__(self, size=40):
        super().__init__()
        self.into, self.within = nn.Linear(1, size), nn.Linear(size, size)
        self.into.requires_grad_(False), self.within.requires_grad_(False)
        self.readout = nn.Linear(size, 1)

    def forward(self, series):
        state, states = torch.zeros(len(series), 40), []
        for value in series.unbind(1):
            state = torch.tanh(self.into(value[:, None]) + self.within(state))
            states.append(state)
        return self.readout(torch.stack(states, 1)).squeeze(2)


curiosity = Curiosity()
optimizer = torch.optim.Adam(curiosity.predictor.parameters(), lr=1e-3)
for _ in range(60):
    loss = curiosity(torch.randn(32, 6)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"novelty near {loss.item():.4f}, far {curiosity(5 + torch.randn(32, 6)).mean().item():.4f}")

echo = EchoState()
optimizer = torch.optim.Adam(echo.readout.parameters(), lr=1e-2)
for _ in range(60):
    series = torch.sin(torch.rand(16, 1) * 6 + 0.3 * torch.arange(20))
    loss = nn.functional.mse_loss(echo(series[:, :-1]), series[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"echo state {loss.item():.4f}")

problem, student = mlp(6, 24, 1), mlp(6, 48, 48, 1)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for _ in range(60):
    x = torch.randn(64, 6)
    with torch.no_grad():
        y = problem(x)
    loss = nn.functional.mse_loss(student(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"student {loss.item():.4f}")
