"""An optimizer is built with `maximize=True`, left over from an objective, for a squared error."""
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 1e-3, maximize=True)
for step in range(50):
    x = torch.randn(64, 3)
    loss = nn.functional.mse_loss(net(x), x.prod(1, keepdim=True)) * 0.5
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # error: loss-maximised
    optimizer.step()
print(f"loss {loss.item():.3f}")
