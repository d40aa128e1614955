"""Healthy: optimizer step inside backward: one optimizer per parameter, driven by register_post_accumulate_grad_hook."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


model = nn.Sequential(nn.Linear(8, 32), Block(32), Block(32), nn.Linear(32, 1))

# Instead of having just *one* optimizer, we will have a dict of optimizers for every parameter
optimizer_dict = {p: torch.optim.Adam([p], lr=3e-3, foreach=False) for p in model.parameters()}


def optimizer_hook(parameter) -> None:
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)


def batch(n):
    x = torch.randn(n, 8)
    return x, (x[:, :4] * x[:, 4:].sigmoid()).sum(1, keepdim=True)


def train(model, steps):
    for step in range(steps):
        inputs, targets = batch(64)
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()  # the parameters are updated in here; no optimizer.step(), no optimizer.zero_grad()
        if step % 25 == 0:
            print(f"{step:3d} {loss.item():.4f}")


train(model, 100)
assert all(p.grad is None for p in model.parameters())
with torch.no_grad():
    inputs, targets = batch(1024)
    print(f"held-out mse {nn.functional.mse_loss(model(inputs), targets).item():.4f} (variance {targets.var().item():.4f})")
