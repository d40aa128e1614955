"""A warm-up per batch is stepped by the helper that updates, and once more by the loop that calls it."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

x = torch.randn(256, 5)
data = DataLoader(TensorDataset(x, x.prod(dim=1, keepdim=True)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 200))


def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()


for epoch in range(8):
    for inputs, targets in data:
        loss = nn.functional.mse_loss(model(inputs), targets)
        update(loss)
        warmup.step()  # error: scheduler-stepped-twice
    print(epoch, loss.item())
