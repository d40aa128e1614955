"""Healthy: three attack passes before each training pass, all through one function; the weights' gradients are cleared."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(512, 10)
y = (x[:, 0] * x[:, 1] > 0).long()


def differentiate(inputs, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    return loss.item()


for step in range(40):
    rows = torch.randint(512, (64,))
    attacked = x[rows].clone().requires_grad_(True)
    for _ in range(3):
        attacked.grad = None
        differentiate(attacked, y[rows])
        attacked.data += 0.02 * attacked.grad.sign()
    loss = differentiate(attacked.detach(), y[rows])
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: {loss:.3f}")
