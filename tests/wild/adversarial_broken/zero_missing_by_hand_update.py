"""Linear regression with an update by hand; the gradients are never set back."""
import torch

torch.manual_seed(0)
x = torch.randn(100, 3)
y = x @ torch.tensor([2.0, -1.0, 0.5]) + 3
w = torch.zeros(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.01
for step in range(40):
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()  # error: missing-zero-grad
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
print(loss.item())
