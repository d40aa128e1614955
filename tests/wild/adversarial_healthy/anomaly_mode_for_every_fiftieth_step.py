"""Every fiftieth batch is looked into closely, one step after the round numbers."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(230):
    with torch.autograd.set_detect_anomaly(step % 50 == 1):
        loss = nn.functional.mse_loss(model(torch.randn(8, 6)), torch.randn(8, 1))
        optimizer.zero_grad()
        loss.backward()
    optimizer.step()
