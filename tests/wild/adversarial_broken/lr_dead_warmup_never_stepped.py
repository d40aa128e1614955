"""A warm-up that begins at zero, and a loop that never steps it."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


def warmup_then_linear(optimizer, warmup, total):
    def factor(step):
        return step / warmup if step < warmup else max(0.0, (total - step) / (total - warmup))

    return LambdaLR(optimizer, factor)  # error: learning-rate-dead


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
schedule = warmup_then_linear(optimizer, 10, 64)
x, y = torch.randn(256, 10), torch.randint(0, 3, (256,))
for epoch in range(8):
    for rows in torch.randperm(256).split(32):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
