"""From "PyTorch Debugging, Lab & Modern Performance", section Forward and Backward Hooks (fragment 0.4.14).

Repaired: model and device; the indentation: registration, one pass and removal stand after the hook. Expected: nothing (one
forward pass with unused gradients is not an evaluation).
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


device = torch.device('cpu')
model = Net()


# Register a forward hook that prints the output shape
def print_shape_hook(module, input, output):
    print(f"{module.__class__.__name__:15s} output shape: {output.shape}")


hooks = []
for name, layer in model.named_children():
    h = layer.register_forward_hook(print_shape_hook)
    hooks.append(h)
# Run one forward pass to see shapes
dummy = torch.randn(1, 784).to(device)
_ = model(dummy)
# Clean up hooks when done
for h in hooks:
    h.remove()
