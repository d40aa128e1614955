"""An object averages weights and holds both models; the trained one also guesses labels without gradients."""

import torch
from torch import nn
from torch.nn import functional as F


class WeightAverage:
    def __init__(self, model, shadow, decay):
        self.model, self.shadow, self.decay = model, shadow, decay
        self.shadow.load_state_dict(model.state_dict())

    def step(self):
        with torch.no_grad():
            for kept, value in zip(self.shadow.parameters(), self.model.parameters(), strict=True):
                kept.mul_(self.decay).add_(value, alpha=1 - self.decay)


def build():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))


torch.manual_seed(20)
x = torch.randn(500, 8)
y = x[:, :3].argmax(1)
model, ema_model = build(), build().requires_grad_(False)
ema = WeightAverage(model, ema_model, 0.95)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    labelled, others = torch.randint(0, 60, (20,)), torch.randint(60, 400, (40,))
    with torch.no_grad():
        guess = model(x[others]).softmax(1) ** 2
        guess = guess / guess.sum(1, keepdim=True)
    loss = F.cross_entropy(model(x[labelled]), y[labelled])
    loss = loss + 0.5 * ((model(x[others] + 0.1 * torch.randn(40, 8)).softmax(1) - guess) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.step()
with torch.no_grad():
    print((ema_model(x[400:]).argmax(1) == y[400:]).float().mean().item())
