"""Gradient checkpointing of residual blocks in train mode only, dropout inside the recomputed part, checkpoint_sequential in a second model."""
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))


class ResidualNet(nn.Module):
    def __init__(self, width=32, depth=4):
        super().__init__()
        self.inp, self.out = nn.Linear(8, width), nn.Linear(width, 1)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if self.training else block(h)
        return self.out(h)


class SequentialNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return checkpoint_sequential(self.body, 2, x, use_reentrant=False) if torch.is_grad_enabled() else self.body(x)


def train(model, x, y, x_test, y_test, epochs=15):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss_fn = nn.MSELoss()
    for _ in range(epochs):
        model.train()
        for index in torch.randperm(len(x)).split(64):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_fn(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        return loss.item(), loss_fn(model(x_test), y_test).item()


torch.manual_seed(5)
x = torch.randn(500, 8)
y = (x[:, :1] * x[:, 1:2]).tanh() + 0.5 * x[:, 2:3]
for kind in (ResidualNet, SequentialNet):
    loss, test = train(kind(), x[:400], y[:400], x[400:], y[400:])
    print(f"{kind.__name__}: train {loss:.4f} test {test:.4f}")
