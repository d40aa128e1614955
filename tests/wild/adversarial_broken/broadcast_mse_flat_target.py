"""House prices: predictions (N, 1), targets (N,)."""
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
X = torch.randn(150, 8)
price = X @ torch.randn(8) + 0.1 * torch.randn(150)
loader = DataLoader(TensorDataset(X, price), batch_size=30, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()
for epoch in range(5):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)  # error: broadcast-target
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
