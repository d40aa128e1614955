"""Learning to learn: an LSTM proposes the updates of small quadratics, trained through the unrolled optimisation."""
import torch
import torch.nn as nn


class MetaOptimizer(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.cell = nn.LSTMCell(2, hidden)
        self.out = nn.Linear(hidden, 1)
        self.hidden = hidden
        nn.init.zeros_(self.out.bias)

    def features(self, g):
        g = g.reshape(-1, 1).detach()
        big = g.abs() >= 1e-4
        return torch.cat([torch.where(big, g.abs().clamp(min=1e-8).log() / 10, torch.full_like(g, -1)),
                          torch.where(big, g.sign(), g * 1e4)], 1)

    def forward(self, g, state):
        h, c = self.cell(self.features(g), state)
        return 0.1 * self.out(h).view_as(g), (h, c)

    def start(self, n):
        return torch.zeros(n, self.hidden), torch.zeros(n, self.hidden)


class Quadratic:
    def __init__(self, d=6):
        self.W, self.y = torch.randn(d, d), torch.randn(d)

    def loss(self, theta):
        return (self.W @ theta - self.y).square().sum()


def unroll(meta, problem, theta, state, steps):
    total = 0.0
    for _ in range(steps):
        value = problem.loss(theta)
        total = total + value
        (g,) = torch.autograd.grad(value, theta, retain_graph=True)
        update, state = meta(g, state)
        theta = theta + update
    return total + problem.loss(theta), theta, state


torch.manual_seed(0)
meta = MetaOptimizer()
adam = torch.optim.Adam(meta.parameters(), lr=5e-3)
tests = [Quadratic() for _ in range(8)]


def evaluate():
    finals = []
    for q in tests:
        theta, state = torch.zeros(6, requires_grad=True), meta.start(6)
        for _ in range(4):
            _, theta, state = unroll(meta, q, theta, state, 5)
            theta, state = theta.detach().requires_grad_(), tuple(s.detach() for s in state)
        finals.append(q.loss(theta).item())
    return sum(finals) / len(finals)


print("start", round(sum(q.loss(torch.zeros(6)).item() for q in tests) / 8, 3))
for episode in range(25):
    q, theta, state = Quadratic(), torch.zeros(6, requires_grad=True), meta.start(6)
    for window in range(4):
        loss, theta, state = unroll(meta, q, theta, state, 5)
        adam.zero_grad()
        loss.backward()
        adam.step()
        theta, state = theta.detach().requires_grad_(), tuple(s.detach() for s in state)
    if episode % 8 == 0:
        print(episode, round(evaluate(), 3))
