"""Predict the gradients that backward passes leave."""


def gradient_of_mean(numbers: int, requires_grad: bool, no_grad: bool) -> float | None:
    """Return the value of each entry of `x.grad`; None if the backward pass raises an error.

    The program: `x = torch.ones(numbers, requires_grad=requires_grad)`, then `x.mean().backward()`, where the mean is
    computed within `torch.no_grad()` if `no_grad` is True.
    """
    return 1 / numbers if requires_grad and not no_grad else None


def gradient_of_square(x: float, passes: int) -> float:
    """Return `x.grad` after this many times `(x ** 2).backward()`, without clearing between them."""
    return passes * 2 * x


def gradient_through_detach(x: float) -> float:
    """Return `x.grad` after `(x * x.detach()).backward()`."""
    return x
