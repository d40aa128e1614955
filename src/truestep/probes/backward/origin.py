"""Find the operations that made a tensor: names and sizes on the tape right before it; no node is kept."""

from __future__ import annotations

from typing import Any

RESHAPING = frozenset(
    {
        "ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "SqueezeBackward1",
        "SqueezeBackward2", "UnsqueezeBackward0", "TransposeBackward0", "TBackward0", "PermuteBackward0",
        "AliasBackward0", "CloneBackward0", "ToCopyBackward0",
    }
)  # fmt: skip
SELECTING = frozenset(
    {"IndexBackward0", "SliceBackward0", "SelectBackward0", "IndexSelectBackward0", "MaskedSelectBackward0"}
)
_SOFTMAX = ("SoftmaxBackward0", "LogSoftmaxBackward0")
_OF_CLASSES = ("nll_loss", "cross_entropy")
_MOST = 8


_PRODUCTS = frozenset(
    {"AddmmBackward0", "BmmBackward0", "MmBackward0", "SparseAddmmBackward0", "UnsafeViewBackward0"}
)  # fmt: skip


def made_by(node: Any) -> str:
    """Return the name of the operation that made the values; views, copies and selections are skipped.

    A product of matrices with a parameter added to it is a linear layer, written by hand.
    """
    for _ in range(_MOST):
        if node is None:
            return ""
        name = str(node.name())
        if name not in RESHAPING and name not in SELECTING:
            return _product_before(node) or name
        node = node.next_functions[0][0]
    return ""


def _product_before(node: Any) -> str:
    """Return "MmBackward0" for a product of matrices to which a parameter is added; else an empty string."""
    if node.name() != "AddBackward0":
        return ""
    names = [str(before.name()) for before, _ in node.next_functions if before is not None]
    product = any(name in _PRODUCTS for name in names)
    return "MmBackward0" if product and "torch::autograd::AccumulateGrad" in names else ""


def softmax_over(node: Any, input: Any, kind: str) -> str:
    """Return the extent of the softmax that made ``input``: see `LossComputed.softmax_over`.

    It is judged by sizes, which transposing and flattening preserve: a softmax over the classes ran over as many
    numbers as there are classes. So does a selection of rows, as of the nodes of a graph.
    """
    selected = False
    for _ in range(_MOST):
        if node is None:
            return ""
        name = node.name()
        if name in _SOFTMAX:
            break
        if name not in RESHAPING and name not in SELECTING:
            return ""
        selected |= name in SELECTING
        node = node.next_functions[0][0]
    else:
        return ""
    shape = [int(size) for size in node._input_metadata[0].shape]
    saved = int(node._saved_dim)
    dim = saved if saved < 1 << 32 else saved - (1 << 64)
    if not shape or not -len(shape) <= dim < len(shape):
        return ""
    if selected and (len(shape) != 2 or input.dim() != 2 or shape[1] != input.shape[1]):
        return ""
    size = shape[dim]
    if size == 1:
        return "one"
    classes = int(input.shape[1]) if input.dim() > 1 else size
    if kind not in _OF_CLASSES or size == classes:
        return "classes"
    return "batch" if dim % len(shape) == 0 else "other"


def shape_of(node: Any, index: int = 0) -> tuple[int, ...]:
    """Return the shape of an output of an operation, or of a leaf; empty if it is unknown."""
    if node.name() == "torch::autograd::AccumulateGrad":
        return tuple(node.variable.shape)
    metadata = getattr(node, "_input_metadata", ())
    sizes = tuple(metadata[index].shape) if index < len(metadata) else ()
    return sizes if all(type(size) is int for size in sizes) else ()  # nested tensors have others
