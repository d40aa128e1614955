"""From "PyTorch Debugging, Lab & Modern Performance", section Inspecting Gradients (fragment 0.4.13).

Repaired: imports, the two-layer model of the printed output, and one backward pass. Expected: nothing.
"""
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))


model = Net()
loss = nn.functional.cross_entropy(model(torch.randn(64, 784)), torch.randint(0, 10, (64,)))
loss.backward()

# Check gradients after a backward pass
for name, param in model.named_parameters():
    if param.grad is not None:
        print(f"{name:20s} grad mean={param.grad.mean():.6f} "
              f"std={param.grad.std():.6f}")
