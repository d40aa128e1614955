"""A network learns the outputs of a random teacher network: four updates for each batch."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
teacher = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1)).requires_grad_(False)


def examples(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(n, 10)
    return x, 4 * teacher(2 * x)


loader = DataLoader(TensorDataset(*examples(1024)), batch_size=32, shuffle=True)
x_test, y_test = examples(1000)
model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        for _update in range(4):
            optimizer.step()  # error: step-without-backward

model.eval()
with torch.no_grad():
    print(f"result: {criterion(model(x_test), y_test).item():.4f}")
