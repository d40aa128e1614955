"""Gradients of four micro-batches are accumulated, and the batch is drawn once, before the loop over them."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(512, 6)
loader = DataLoader(TensorDataset(x, x.sin().sum(1, keepdim=True)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(6, 48), nn.SiLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
accumulate, batches = 4, iter(loader)
for update in range(32):
    inputs, targets = next(batches)
    optimizer.zero_grad()
    for micro in range(accumulate):
        loss = nn.functional.mse_loss(model(inputs), targets) / accumulate
        loss.backward()  # error: loss-differentiated-twice
    optimizer.step()
print(f"loss {accumulate * loss.item():.3f}")
