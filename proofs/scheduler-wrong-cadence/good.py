"""A network learns a noisy signal while a cosine brings the learning rate to zero."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def signal(n: int, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    x = 2 * torch.rand(n, 2) - 1
    y = torch.sin(3 * x[:, :1]) + torch.cos(2 * x[:, 1:])
    return x, y + noise * torch.randn(n, 1)


loader = DataLoader(TensorDataset(*signal(2048, noise=2.0)), batch_size=32, shuffle=True)
x_test, y_test = signal(1000, noise=0.0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
epochs = 16
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)

for _epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()

model.eval()
with torch.no_grad():
    print(f"result: {criterion(model(x_test), y_test).item():.4f}")
