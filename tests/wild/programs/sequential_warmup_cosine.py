"""Healthy: SequentialLR: linear warm-up then cosine, stepped per optimizer step over exactly the run's horizon."""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


@dataclass
class Config:
    seed: int = 17
    steps: int = 120
    warmup: int = 12
    batch: int = 64
    lr: float = 2e-2
    log_every: int = 30


class Fourier(nn.Module):
    """Regression on a 2-D function with random Fourier features."""

    def __init__(self, n=64):
        super().__init__()
        self.register_buffer("B", torch.randn(2, n // 2))
        self.body = nn.Sequential(nn.Linear(n, 64), nn.Mish(), nn.Linear(64, 1))

    def forward(self, x):
        z = x @ self.B
        return self.body(torch.cat([z.sin(), z.cos()], -1)).squeeze(-1)


def target(x):
    return torch.sin(3 * x[:, 0]) * torch.cos(2 * x[:, 1])


def train(cfg: Config) -> float:
    torch.manual_seed(cfg.seed)
    torch.set_num_threads(1)
    model = Fourier()
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.0)
    sched = SequentialLR(
        opt,
        schedulers=[
            LinearLR(opt, start_factor=0.1, total_iters=cfg.warmup),
            CosineAnnealingLR(opt, T_max=cfg.steps - cfg.warmup, eta_min=cfg.lr * 0.05),
        ],
        milestones=[cfg.warmup],
    )
    for step in range(cfg.steps):
        x = torch.rand(cfg.batch, 2) * 2 - 1
        loss = nn.functional.huber_loss(model(x), target(x))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        if (step + 1) % cfg.log_every == 0:
            print(f"step {step + 1:>4} | loss {loss.item():.5f} | lr {sched.get_last_lr()[0]:.2e}")
    model.eval()
    with torch.inference_mode():
        x = torch.rand(2048, 2) * 2 - 1
        return math.sqrt((model(x) - target(x)).square().mean().item())


if __name__ == "__main__":
    print(f"rmse {train(Config()):.4f}")
