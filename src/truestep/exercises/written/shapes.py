"""Predict shapes of tensors in a network."""

Shape = tuple[int, ...]


def after_linear(shape: Shape, out_features: int) -> Shape:
    """Return the shape of the result of `nn.Linear(shape[-1], out_features)`, for an input of this shape."""
    return (*shape[:-1], out_features)


def after_mean(shape: Shape, dim: int) -> Shape:
    """Return the shape of `x.mean(dim)`; `dim` may be negative."""
    dim %= len(shape)
    return shape[:dim] + shape[dim + 1 :]


def attention_weights(shape: Shape, heads: int) -> Shape:
    """Return the shape of the weights of self-attention with `heads` heads, for an input (batch, time, features)."""
    batch, time, _ = shape
    return (batch, heads, time, time)


def after_broadcast(one: Shape, other: Shape) -> Shape:
    """Return the shape of `a - b` for tensors of these shapes, which can be broadcast."""
    length = max(len(one), len(other))
    pairs = zip((1,) * (length - len(one)) + one, (1,) * (length - len(other)) + other, strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)
