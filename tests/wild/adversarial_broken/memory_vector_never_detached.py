"""A running memory is mixed with the features of every step, graphs included."""
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 16)), nn.Linear(16, 2)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05, fused=True)
memory = torch.zeros(16)
for step in range(50):
    x, y = torch.randn(16, 5), torch.randint(0, 2, (16,))
    features = encoder(x)
    memory = 0.9 * memory + 0.1 * features.mean(0)
    loss = nn.functional.cross_entropy(head(features - memory), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # error: hidden-state-not-detached
    optimizer.step()
print(loss.item())
