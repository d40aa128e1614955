"""A regression with a weak effect: its error is close to that of the mean, and lower."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(640, 8)
y = 50 + 0.6 * x[:, :1] + torch.randn(640, 1)
model = nn.Linear(8, 1)
nn.init.constant_(model.bias, 50.0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(12):
    for a, b in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        loss = F.mse_loss(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
