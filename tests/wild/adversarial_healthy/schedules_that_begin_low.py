"""Functions of schedules with small numbers: a rate for a base of one, a short trial of a warm-up, a resumed staircase."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 8)
y = (x @ torch.randn(8, 1)).squeeze(1)


def fit(lr, function, steps, done=0):
    """Train a model with a schedule, which goes on where it was."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = LambdaLR(optimizer, function)
    if done:
        schedule.load_state_dict({**schedule.state_dict(), "last_epoch": done, "_step_count": done + 1})
        optimizer.param_groups[0]["lr"] = lr * function(done)
    for _ in range(steps):
        rows = torch.randint(0, 512, (32,))
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


print("rate of a base of one", fit(1.0, lambda step: 2e-3 * min(1.0, (step + 1) / 20), 120))
print("trial of a warm-up", fit(0.02, lambda step: min(1.0, (step + 1) / 2000), 39))
print("staircase, resumed", fit(0.01, lambda step: 0.1 ** (step // 60), 80, done=120))
