"""ReLU and its backward pass."""

import torch


def relu(x):
    """Return x where it is positive, and 0 elsewhere: max(x, 0).

    NaN stays NaN, as it must: an activation that turns NaN into 0 hides the failure. That is why the test is
    "x <= 0", which is false for NaN, and not "x > 0".

    Source: Nair and Hinton, Rectified linear units improve restricted Boltzmann machines (ICML 2010).

    >>> relu(torch.tensor([-1.0, 0.0, 2.0, float("nan")]))
    tensor([0., 0., 2., nan])
    """
    return torch.where(x <= 0, 0.0, x)


def relu_backward(x, grad_output):
    """Return the gradient of the input: that of the output where x is positive, and 0 elsewhere.

        dL/dx = dL/dy * [x > 0]

    The derivative at 0 does not exist; the convention is that of the left side, which is 0.

    >>> relu_backward(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([5.0, 5.0, 5.0]))
    tensor([0., 0., 5.])
    """
    return torch.where(x <= 0, 0.0, grad_output)
