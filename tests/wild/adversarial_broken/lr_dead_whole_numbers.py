"""The factor of a warm-up per epoch is divided as whole numbers: it is zero in all epochs of the run."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 5), torch.randn(160, 1))
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
epochs, warmup = 4, 5
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(n // warmup, 1))  # error: learning-rate-dead
for _ in range(epochs):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    scheduler.step()
