"""Copies of weights kept and restored: best epoch, rollback after a bad step, Reptile, averaged weights swapped in."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(200, 6)
y = (x[:, :1] * x[:, 1:2] > 0).float()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)


def loss(rows):
    return nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss(torch.randint(0, 150, (32,))).backward()
        optimizer.step()


def held_out():
    with torch.no_grad():
        return loss(slice(150, 200)).item()


initial = copy.deepcopy(model.state_dict())
best, best_state, average, previous = float("inf"), None, None, None
for epoch in range(12):
    train(10)
    now = held_out()
    if now < best:
        best, best_state = now, {name: value.detach().clone() for name, value in model.state_dict().items()}
    elif previous is not None and now > 2 * best:
        model.load_state_dict(previous)
    previous = {name: value.cpu().clone() for name, value in model.state_dict().items()}
    average = average or copy.deepcopy(previous)
    average = {name: 0.9 * average[name] + 0.1 * value for name, value in model.state_dict().items()}
    backup = copy.deepcopy(model.state_dict())
    model.load_state_dict(average)
    held_out()
    model.load_state_dict(backup)
last = model.state_dict()
model.load_state_dict(last)
before = {name: value.clone() for name, value in model.state_dict().items()}
train(5)
after = model.state_dict()
model.load_state_dict({name: before[name] + 0.5 * (after[name] - before[name]) for name in before})
model.load_state_dict(best_state)
print(best, held_out())
model.load_state_dict(initial)
