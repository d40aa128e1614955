"""Healthy: the same training with foreach, fused and single-tensor optimizers, gradients cleared with set_to_none."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def train(opt_cls, steps=60, **kwargs):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 4))
    teacher = torch.randn(12, 4)
    opt = opt_cls(net.parameters(), **kwargs)
    for _ in range(steps):
        x = torch.randn(96, 12)
        y = (x @ teacher).argmax(1)
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    net.eval()
    with torch.inference_mode():
        x = torch.randn(1000, 12)
        return loss.item(), (net(x).argmax(1) == (x @ teacher).argmax(1)).float().mean().item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    runs = {
        "adam/for-loop": (torch.optim.Adam, dict(lr=3e-3, foreach=False)),
        "adam/foreach": (torch.optim.Adam, dict(lr=3e-3, foreach=True)),
        "adam/fused": (torch.optim.Adam, dict(lr=3e-3, fused=True)),
        "adamw/fused": (torch.optim.AdamW, dict(lr=3e-3, fused=True, weight_decay=0.0)),
        "sgd/fused": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, fused=True)),
        "rmsprop/foreach": (torch.optim.RMSprop, dict(lr=1e-3, foreach=True)),
    }
    for name, (cls, kwargs) in runs.items():
        loss, acc = train(cls, **kwargs)
        print(f"{name:>16}: loss {loss:.4f} acc {acc:.3f}")
