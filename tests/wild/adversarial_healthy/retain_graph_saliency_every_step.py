"""The gradient with respect to the features is read after every backward pass, through the graph that was retained."""
import torch
from torch import nn

torch.manual_seed(0)
trunk, head = nn.Sequential(nn.Linear(6, 32), nn.Tanh()), nn.Linear(32, 3)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1)
importance = torch.zeros(32)
for step in range(60):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    features = trunk(x)
    loss = nn.functional.cross_entropy(head(features), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    (slope,) = torch.autograd.grad(loss, features)
    importance = 0.9 * importance + 0.1 * slope.abs().mean(0)
    optimizer.step()
print(importance.sum().item())
