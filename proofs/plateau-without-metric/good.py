"""A network learns a signal; the learning rate falls when the validation loss stops improving."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def signal(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = 2 * torch.rand(n, 2) - 1
    return x, torch.sin(4 * x[:, :1]) * torch.cos(3 * x[:, 1:]) + 0.1 * torch.randn(n, 1)


loader = DataLoader(TensorDataset(*signal(1024)), batch_size=32, shuffle=True)
(x_val, y_val), (x_test, y_test) = signal(500), signal(1000)
model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=5)
criterion = nn.MSELoss()

for epoch in range(15):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val).item()
    scheduler.step(val_loss)
    print(f"epoch {epoch}: validation loss {val_loss:.4f}")

with torch.no_grad():
    print(f"result: {criterion(model(x_test), y_test).item():.4f}")
