"""The kinds of post-mortems: slug, error and content. Text only; needs no torch."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["POST_MORTEMS", "PostMortemKind"]


class PostMortemKind(NamedTuple):
    """One kind of post-mortem."""

    error: str
    """The error of torch, in lower case."""
    names: str
    """The facts that the post-mortem gives."""


POST_MORTEMS = {
    "modified-in-place": PostMortemKind(
        "a variable needed for gradient computation was modified in place",
        "the line that modified it, the optimizer's step between the two passes, or the variable that carries the "
        "graph of an earlier iteration",
    ),
    "graph-freed": PostMortemKind(
        "backward through a graph a second time",
        "the variable that leads back into the freed graph, and where it was set",
    ),
    "shapes-do-not-fit": PostMortemKind(
        "shapes that cannot be multiplied, broadcast or convolved; batch sizes of a loss",
        "the layer by name, its input and the origin of the input, the matching number",
    ),
    "different-devices": PostMortemKind(
        "tensors on different devices",
        "the device of each, the line that created or moved each, a `.to()` with a discarded result",
    ),
    "different-types": PostMortemKind("tensors of different types", "the type of each, and the line that created it"),
    "label-outside-of-classes": PostMortemKind(
        "a target out of bounds", "the labels of the batch, the number of classes, and the origin of both"
    ),
    "index-outside-of-table": PostMortemKind(
        "an index out of range in an embedding", "the embedding, its rows, the indices"
    ),
    "loss-not-a-number": PostMortemKind(
        "backward from more than one number", 'the loss and its shape, a `reduction="none"`'
    ),
    "loss-without-graph": PostMortemKind(
        "backward from a tensor that does not require grad",
        "the `no_grad`, the frozen weights, or the one expression that left the graph",
    ),
    "batch-of-one": PostMortemKind(
        "batch normalisation of one sample", "the layer, and the loader that keeps a last batch of one"
    ),
    "out-of-memory": PostMortemKind(
        "memory that cannot be allocated, on CPU or GPU",
        "the requested size, the owners of the rest, lists of kept losses",
    ),
    "weights-do-not-fit": PostMortemKind(
        "errors in loading a `state_dict`", "a prefix that a wrapper left; the one layer with another size"
    ),
    "nan-in-backward": PostMortemKind(
        "NaN under `detect_anomaly` (values on the CPU)",
        "the first variable that was not finite, or the square root of a 0",
    ),
}
"""In the order of the reference, `docs/reference/post-mortems.md`."""
