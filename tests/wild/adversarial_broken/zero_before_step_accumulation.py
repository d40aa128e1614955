"""Accumulation: the window closes with zero_grad and step in the wrong order."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(160, 4), torch.randn(160, 1)), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
accumulate = 2
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.l1_loss(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            opt.zero_grad()  # error: zero-grad-before-step
            opt.step()
    print(epoch, loss.item())
