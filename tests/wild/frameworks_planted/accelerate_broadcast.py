"""Accelerate: predictions of shape (N, 1) against targets of shape (N,)."""
import warnings

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
accelerator = Accelerator(cpu=True)
x = torch.randn(256, 8)
y = x.sum(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for _ in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)  # error: broadcast-target
        accelerator.backward(loss)
        optimizer.step()
print(f"loss {loss.item():.2f}")
