"""Healthy: gradient checkpointing, both use_reentrant variants and checkpoint_sequential, with dropout inside the blocks."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class ResBlock(nn.Module):
    def __init__(self, dim, p=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(p), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.net(x)


class Net(nn.Module):
    def __init__(self, mode, dim=32, depth=4):
        super().__init__()
        self.mode = mode
        self.stem = nn.Linear(10, dim)
        self.blocks = nn.Sequential(*[ResBlock(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 3)

    def forward(self, x):
        h = self.stem(x)
        if self.training and self.mode == "sequential":
            h = checkpoint_sequential(self.blocks, 2, h, use_reentrant=False)
        else:
            for block in self.blocks:
                if self.training and self.mode in ("reentrant", "non-reentrant"):
                    h = checkpoint(block, h, use_reentrant=self.mode == "reentrant")
                else:
                    h = block(h)
        return self.head(h)


def run(mode):
    torch.manual_seed(0)
    model = Net(mode)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    w = torch.randn(10, 3)
    for step in range(30):
        x = torch.randn(64, 10)
        y = (x @ w).argmax(1)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        x = torch.randn(500, 10)
        acc = (model(x).argmax(1) == (x @ w).argmax(1)).float().mean().item()
    print(f"{mode:>14} last loss {loss.item():.6f} acc {acc:.3f}")
    return loss.item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    losses = [run(m) for m in ("plain", "reentrant", "non-reentrant", "sequential")]
    print("largest difference", max(losses) - min(losses))
