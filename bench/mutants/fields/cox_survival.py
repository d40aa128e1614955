"""Neural Cox model on synthetic censored survival times."""

import numpy as np
import torch
from torch import nn


def simulate(n, rng):
    x = rng.normal(size=(n, 6))
    risk = 0.9 * x[:, 0] - 0.7 * x[:, 1] + 0.5 * x[:, 2] ** 2
    event_time = rng.exponential(np.exp(-risk))
    censor_time = rng.exponential(1.5, size=n)
    time = np.minimum(event_time, censor_time)
    event = event_time <= censor_time
    return [torch.tensor(v, dtype=torch.float32) for v in (x, time, event)]


def cox_loss(risk, time, event):
    """Negative partial log likelihood of one batch."""
    order = torch.argsort(time, descending=True)
    risk, event = risk[order], event[order]
    log_risk_set = torch.logcumsumexp(risk, dim=0)
    return -((risk - log_risk_set) * event).sum() / event.sum().clamp(min=1)


def concordance(risk, time, event):
    earlier = (time[:, None] < time[None, :]) & (event[:, None] == 1)
    right = risk[:, None] > risk[None, :]
    return (right & earlier).sum().item() / earlier.sum().item()


rng = np.random.default_rng(4)
torch.manual_seed(4)
x, t, e = simulate(1200, rng)
xv, tv, ev = simulate(500, rng)
print(f"events {e.mean():.3f}")

net = nn.Sequential(nn.Linear(6, 32), nn.ELU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=1e-4)
for epoch in range(30):
    net.train()
    losses = []
    for idx in torch.randperm(len(x)).split(200):
        loss = cox_loss(net(x[idx]).squeeze(1), t[idx], e[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    if epoch % 6 == 5:
        net.eval()
        with torch.no_grad():
            c = concordance(net(xv).squeeze(1), tv, ev)
        print(f"epoch {epoch + 1} loss {np.mean(losses):.4f} c-index {c:.4f}")
