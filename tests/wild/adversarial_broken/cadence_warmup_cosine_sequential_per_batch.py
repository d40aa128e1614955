"""Warm-up of two epochs, then a cosine of eight, all of it stepped per batch."""
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
epochs, warm = 10, 2
loader = DataLoader(TensorDataset(torch.randn(200, 6), torch.randint(0, 3, (200,))), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = SequentialLR(
    optimizer,
    [LinearLR(optimizer, 0.1, total_iters=warm), CosineAnnealingLR(optimizer, T_max=epochs - warm)],
    milestones=[warm],
)
for epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        scheduler.step()  # error: scheduler-wrong-cadence
