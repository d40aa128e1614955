"""NaN guards of three styles: skip before backward, skip after backward, skip by the norm."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(200, 4)
x[::30, 0] = float("nan")
x[7::40, 1] = float("inf")
loader = DataLoader(TensorDataset(x, torch.randn(200, 1)), batch_size=5)
model = nn.Linear(4, 1)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
skipped = 0
for epoch in range(3):
    for xb, yb in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        if epoch == 0 and not torch.isfinite(loss):
            skipped += 1
            continue
        loss.backward()
        if epoch == 1 and not math.isfinite(loss.item()):
            opt.zero_grad()
            skipped += 1
            continue
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not torch.isfinite(norm):
            skipped += 1
            continue
        opt.step()
print(skipped, loss.item())
