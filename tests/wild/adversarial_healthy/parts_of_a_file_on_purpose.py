"""A file with all states: the weights alone are tuned on another task, then a resumed run steps its schedule to the epoch in it."""
import io

import torch
from torch import nn

torch.manual_seed(0)


def fit(net, adam, schedule, W, first, last):
    for epoch in range(first, last):
        for _ in range(6):
            x = torch.randn(32, 10)
            adam.zero_grad()
            loss = nn.functional.cross_entropy(net(x), (x @ W).argmax(1))
            loss.backward()
            adam.step()
        schedule.step()
    print(f"epoch {epoch} loss {loss.item():.3f} rate {schedule.get_last_lr()[0]:.4f}")


def build(rate=1e-2):
    net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
    adam = torch.optim.AdamW(net.parameters(), lr=rate)
    return net, adam, torch.optim.lr_scheduler.CosineAnnealingLR(adam, 12)


file, task, other = io.BytesIO(), torch.randn(10, 3), torch.randn(10, 3)
net, adam, schedule = build()
fit(net, adam, schedule, task, 0, 6)
torch.save({"net": net.state_dict(), "adam": adam.state_dict(), "schedule": schedule.state_dict(), "epoch": 6}, file)

file.seek(0)
pretrained = torch.load(file)
print("weights of epoch", pretrained["epoch"])
net, adam, schedule = build(3e-3)
net.load_state_dict(pretrained["net"])
fit(net, adam, schedule, other, 0, 12)

file.seek(0)
checkpoint = torch.load(file)
net, adam, schedule = build()
net.load_state_dict(checkpoint["net"])
adam.load_state_dict(checkpoint["adam"])
start = checkpoint["epoch"]
for _ in range(start):
    schedule.step()
fit(net, adam, schedule, task, start, 12)
