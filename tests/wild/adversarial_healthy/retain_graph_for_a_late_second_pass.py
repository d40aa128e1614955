"""One helper runs every backward pass; the penalty that shares the graph joins only after a warm-up."""
import torch
from torch import nn

torch.manual_seed(0)
trunk, head = nn.Sequential(nn.Linear(6, 32), nn.Tanh()), nn.Linear(32, 3)
optimizer = torch.optim.Adam([*trunk.parameters(), *head.parameters()])
for step in range(120):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    features = trunk(x)
    loss = nn.functional.cross_entropy(head(features), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    if step >= 70:
        penalty = 0.01 * features.pow(2).mean()
        penalty.backward()
    optimizer.step()
print(loss.item())
