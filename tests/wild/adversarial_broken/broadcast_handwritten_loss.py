"""A hand-written squared error between (N, 1) and (N,)."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    x = torch.randn(24, 2)
    y = x[:, 0] * x[:, 1]
    prediction = model(x)
    loss = ((prediction - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()  # error: broadcast-target
    optimizer.step()
print(loss.item())
