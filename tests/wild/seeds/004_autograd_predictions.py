"""From "PyTorch Debugging, Lab & Modern Performance", exercise Predict the Autograd Behavior: three backward passes, two of which raise.

Repaired: the three cases of the exercise's text written out, each error caught. Expected: nothing: PyTorch raises itself.
"""
import torch

x = torch.randn(3, 4)
y = x.mean()
try:
    y.backward()
except RuntimeError as error:
    print("(a)", error)

x = torch.randn(3, 4, requires_grad=True)
y = x.mean()
y.backward()
print("(b)", x.grad[0, 0].item())

with torch.no_grad():
    x = torch.randn(3, 4, requires_grad=True)
    y = x.mean()
try:
    y.backward()
except RuntimeError as error:
    print("(c)", error)
