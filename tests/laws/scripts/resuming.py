import io

import torch
from _state import digest, tell
from torch import nn

torch.manual_seed(22)


def build():
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)


def train(parts, steps):
    model, optimizer, schedule = parts
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
        loss.backward()
        optimizer.step()
        schedule.step()
        print(repr(loss.item()), schedule.get_last_lr())


first = build()
train(first, 8)
file = io.BytesIO()
torch.save([part.state_dict() for part in first] + [torch.get_rng_state()], file)
print(len(file.getvalue()))
train(first, 4)
file.seek(0)
*states, rng = torch.load(file)
second = build()
for part, state in zip(second, states, strict=True):
    part.load_state_dict(state)
torch.set_rng_state(rng)
train(second, 4)
print(digest(first[0].state_dict()) == digest(second[0].state_dict()))
tell(*second)
