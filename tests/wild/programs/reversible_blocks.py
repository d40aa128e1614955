"""Healthy: reversible residual blocks: activations recomputed from the outputs inside a custom backward that calls backward itself."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
torch.set_num_threads(1)


class ReversibleFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, blocks, *params):
        ctx.blocks = blocks
        with torch.no_grad():
            for block in blocks:
                x = block(x)
        ctx.y = x.detach()
        return x

    @staticmethod
    def backward(ctx, dy):
        y, blocks = ctx.y, ctx.blocks
        del ctx.y
        for block in reversed(blocks):
            y, dy = block.backward_pass(y, dy)
        # the gradients of the parameters are where they belong already
        return (dy, None, *[None for b in blocks for _ in b.parameters()])


class ReversibleBlock(nn.Module):
    def __init__(self, f, g):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x):
        x1, x2 = torch.chunk(x, 2, dim=1)
        y1 = x1 + self.f(x2)
        y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=1)

    def backward_pass(self, y, dy):
        y1, y2 = torch.chunk(y, 2, dim=1)
        dy1, dy2 = torch.chunk(dy, 2, dim=1)
        with torch.enable_grad():
            y1 = y1.detach().requires_grad_()
            gy1 = self.g(y1)
            torch.autograd.backward(gy1, dy2)
        with torch.no_grad():
            x2 = y2 - gy1
            dx1 = dy1 + y1.grad
        with torch.enable_grad():
            x2 = x2.detach().requires_grad_()
            fx2 = self.f(x2)
            torch.autograd.backward(fx2, dx1)
        with torch.no_grad():
            x1 = y1 - fx2
            dx2 = dy2 + x2.grad
            return torch.cat([x1, x2.detach()], dim=1), torch.cat([dx1, dx2], dim=1)


class RevNet(nn.Module):
    def __init__(self, depth=4, width=32):
        super().__init__()
        half = width // 2
        sub = lambda: nn.Sequential(nn.LayerNorm(half), nn.Linear(half, half), nn.GELU(), nn.Linear(half, half))
        self.embed = nn.Linear(64, width)
        self.blocks = nn.ModuleList(ReversibleBlock(sub(), sub()) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x)
        parameters = [p for b in self.blocks for p in b.parameters()]
        return self.head(ReversibleFunction.apply(x, self.blocks, *parameters))


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
model = RevNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(6):
    for index in torch.randperm(1400).split(100):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item()
    model.train()
    print(f"epoch {epoch} loss {loss.item():.4f} test accuracy {accuracy:.3f}")
