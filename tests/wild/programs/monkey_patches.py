"""A script that patches torch itself: counting backward, a logging Module call, a wrapped cross entropy, a global clip inside SGD.step; all undone."""
import functools
import torch
import torch.nn as nn
import torch.nn.functional as F

counts = {"backward": 0, "call": 0, "loss": 0, "step": 0, "zero": 0}


def wrap(owner, name, key):
    original = getattr(owner, name)

    @functools.wraps(original)
    def patched(*args, **kwargs):
        counts[key] += 1
        return original(*args, **kwargs)

    setattr(owner, name, patched)
    return lambda: setattr(owner, name, original)


def train(steps):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 24), nn.SiLU(), nn.Dropout(0.05), nn.Linear(24, 3))
    opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    for _ in range(steps):
        x = torch.randn(64, 6)
        y = x[:, :3].argmax(1)
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    return round(loss.item(), 4)


print("plain", train(40))
undo = [
    wrap(torch.Tensor, "backward", "backward"),
    wrap(nn.Module, "__call__", "call"),
    wrap(F, "cross_entropy", "loss"),
    wrap(torch.optim.SGD, "step", "step"),
    wrap(torch.optim.Optimizer, "zero_grad", "zero"),
]
print("patched", train(40), counts)
for u in undo:
    u()
print("again", train(40), counts)


class Quiet(nn.Module):
    """Overrides __call__ itself, and answers every unknown attribute."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 3)

    def __call__(self, x, scale=1.0):
        return self.lin(x) * scale

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_"):
                raise
            return lambda *a: name

    def __len__(self):
        return 0

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


net, twin = Quiet(), Quiet()
opt = torch.optim.Adam([*net.parameters(), *twin.parameters()], lr=0.05)
for _ in range(50):
    x = torch.randn(64, 6)
    loss = F.cross_entropy(net(x, scale=2.0) + twin(x), x[:, :3].argmax(1))
    opt.zero_grad(); loss.backward(); opt.step()
print("odd module", round(loss.item(), 4), net.anything(), len(net), net == 3)
