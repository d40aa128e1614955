"""A dry run on the meta device and one under FakeTensorMode count parameters and memory before the real training."""
import torch
import torch.nn as nn
from torch._subclasses.fake_tensor import FakeTensorMode


def build(device="cpu"):
    with torch.device(device):
        return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 4))


def one_step(model, x, y, opt):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    return loss


def train(model, steps, device="cpu"):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    for _ in range(steps):
        x = torch.randn(32, 16, device=device)
        y = torch.randint(0, 4, (32,), device=device) if device == "meta" else x[:, :4].argmax(1)
        loss = one_step(model, x, y, opt)
    return loss, opt


torch.manual_seed(0)
loss, opt = train(build("meta"), 3, "meta")
print("meta", loss.device, sum(p.numel() for p in opt.param_groups[0]["params"]), "parameters")
with FakeTensorMode() as fake:
    loss, opt = train(build(), 5)
    size = sum(t.numel() * t.element_size() for s in opt.state.values() for t in s.values() if torch.is_tensor(t))
    print("fake", type(loss).__name__, size, "bytes of optimizer state")
model = build()
first, _ = train(model, 1)
last, _ = train(model, 80)
print("real", round(first.item(), 3), "->", round(last.item(), 3))
