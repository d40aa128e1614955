"""A run is resumed from a file in memory: weights, epoch and schedule go on, the moments of Adam begin again."""
import io

import torch
from torch import nn

torch.manual_seed(0)
W = torch.randn(12, 3)


def build():
    net = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 3))
    adam = torch.optim.Adam(net.parameters(), lr=1e-2)
    return net, adam, torch.optim.lr_scheduler.StepLR(adam, 4, 0.5)


def run(file, epochs, resume=False):
    net, adam, steps = build()
    first = 0
    if resume:
        file.seek(0)
        stored = torch.load(file)
        net.load_state_dict(stored["net"])  # error: state-not-loaded
        steps.load_state_dict(stored["steps"])
        first = stored["epoch"] + 1
    for epoch in range(first, epochs):
        for _ in range(8):
            x = torch.randn(32, 12)
            loss = nn.functional.cross_entropy(net(x), (x @ W).argmax(1))
            adam.zero_grad()
            loss.backward()
            adam.step()
        steps.step()
        file.seek(0)
        torch.save({"net": net.state_dict(), "adam": adam.state_dict(), "steps": steps.state_dict(), "epoch": epoch}, file)
    print(f"loss {loss.item():.3f}, rate {steps.get_last_lr()[0]:.4f}")


memory = io.BytesIO()
run(memory, 4)
run(memory, 8, resume=True)
