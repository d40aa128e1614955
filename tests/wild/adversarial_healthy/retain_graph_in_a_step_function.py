"""A step in a separate function: its retained graph is gone when it returns, before the next forward pass."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters())


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward(retain_graph=True)
    optimizer.step()
    return loss.item()


for step in range(60):
    value = train_step(torch.randn(16, 6), torch.randint(0, 3, (16,)))
print(value)
