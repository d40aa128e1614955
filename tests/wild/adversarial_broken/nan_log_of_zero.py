"""Binary cross entropy by hand with log of a saturated sigmoid."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
for step in range(60):
    x = 20 * torch.randn(64, 3)
    y = (x[:, :1] > 0).float()
    p = torch.sigmoid(model(x))
    loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
    optimizer.zero_grad()
    loss.backward()  # error: nan-or-inf
    optimizer.step()
print(loss.item())
