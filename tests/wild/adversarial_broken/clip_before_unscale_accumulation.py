"""Accumulation with a scaler: clip first, unscale afterwards."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
N = 2
loader = DataLoader(TensorDataset(torch.randn(96, 6), torch.randn(96, 1)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y) / N
        scaler.scale(loss).backward()
        if (i + 1) % N == 0:
            nn.utils.clip_grad_value_(model.parameters(), 0.1)  # error: clip-before-unscale
            scaler.unscale_(opt)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
    print(epoch, loss.item())
