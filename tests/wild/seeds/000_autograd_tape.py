"""From "PyTorch Training", section Autograd: a scalar polynomial, and a function with an `if` on a tensor's value.

Repaired: lost indentation. Expected: nothing; `.item()` decides a branch and the gradients are right (8 and 4).
"""
import torch

x = torch.tensor(3.0, requires_grad=True)
y = x ** 2 + 2 * x + 1
print(y.grad_fn)
y.backward()
print(x.grad)


def weird_function(x):
    if x.item() > 0:
        return x ** 2
    else:
        return x ** 3


x = torch.tensor(2.0, requires_grad=True)
y = weird_function(x)
y.backward()
print(x.grad)
