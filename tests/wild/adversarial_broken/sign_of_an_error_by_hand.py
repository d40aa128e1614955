"""A regression by hand, with updates by hand: the error has the sign of a reward, and each step makes it larger."""
import torch

torch.manual_seed(0)
line = torch.nn.Linear(4, 1)
x = torch.randn(200, 4)
y = x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
for iteration in range(60):
    cost = -((line(x) - y) ** 2).mean()
    line.zero_grad()
    cost.backward()  # error: loss-maximised
    with torch.no_grad():
        for parameter in line.parameters():
            parameter -= 0.01 * parameter.grad
print(f"cost {cost.item():.3f}")
