"""Labels that a loss multiplies by a score, or compares with -1 and 1: the losses of a margin, and logistic losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truestep.events import SignedLabelsRead, Site
from truestep.probes.backward.origin import shape_of
from truestep.probes.backward.signs import terms_of
from truestep.probes.context.sampling import FirstReads
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_CLAMPS = ("ClampMinBackward0", "ClampBackward0", "ClampBackward1", "ReluBackward0", "MaximumBackward0")
_SHIFTS = ("RsubBackward1", "SubBackward0", "SubBackward1", "AddBackward0", "AddBackward1")
_LOGISTIC = ("SoftplusBackward0", "Log1PBackward0")
_SOFT_MARGIN = "SoftMarginLossBackward0"
_WHERE = "WhereBackward0"
_PAIR = 2
_FEW, _MANY = 8, 1 << 20
"""Least and largest number of labels that are read."""
_LEAST_PART = 0.05
"""Least share of each of two labels."""


class SignedLabels:
    """Reads the labels on the tapes of the first losses of each line."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._reads = FirstReads()

    def look(self, root: Any, site: Site | None) -> None:
        """Emit the labels of a loss that expects -1 and 1: the term with a label of 0, or else the first one."""
        if root is None or not self._reads.is_next(site):
            return
        with self.scene.torch.no_grad():
            found = list(_terms(root))
        if found:
            kind, zeros = max(found, key=lambda one: one[1])
            self.scene.emit(SignedLabelsRead(site=site, kind=kind, zeros=zeros))


def _terms(root: Any) -> Iterator[tuple[str, int]]:
    """Yield the terms of a loss with such labels: the loss, and the percentage of labels of 0 if there is no -1."""
    choices = []
    for node, _ in terms_of(root):
        name = str(node.name())
        if name == _SOFT_MARGIN:
            yield from _of_labels("soft margin", saved(node, "target"), 1)
        elif name == _WHERE:
            choices.append(node)
        elif name in _CLAMPS and _is_above_zero(node, name):
            factor = _factor(_behind_shift(node))
            yield from _of_labels("hinge", factor, 1) if factor is not None else ()
        elif name in _LOGISTIC:
            inner = node.next_functions[0][0]
            if name == "Log1PBackward0":
                inner = inner.next_functions[0][0] if inner is not None and inner.name() == "ExpBackward0" else None
            factor = _factor(inner)
            yield from _of_labels("logistic", factor, -1) if factor is not None else ()
    if len(choices) == _PAIR:
        yield from _of_choices(choices)


def _of_labels(kind: str, labels: Any, sign: int) -> Iterator[tuple[str, int]]:
    """Yield the percentage of zeros among labels of two values; of those of a margin, the sign may be turned."""
    if labels is None or not _FEW <= labels.numel() <= _MANY or not has_values(labels) or labels.is_complex():
        return
    labels, number = labels.detach(), int(labels.numel())
    zeros, ones, others = (int((labels == value).sum()) for value in (0, sign, -sign))
    if kind == "hinge" and others > ones:
        ones, others = others, ones
    if zeros + ones == number and min(zeros, ones) >= _LEAST_PART * number:
        yield kind, round(100 * zeros / number)
    elif ones + others == number:
        yield kind, 0


def _of_choices(nodes: list[Any]) -> Iterator[tuple[str, int]]:
    """Yield the labels of the two choices of a loss of embeddings: between a distance, and a margin that it keeps.

    Of a distance of cosines, one is chosen where the label is 1, the other where it is -1. Of another distance, one is
    chosen where the label is not -1, the other where it is not 1.
    """
    margin = [node for node in nodes if _is_margin(node)]
    distance = [node for node in nodes if not _is_margin(node)]
    if len(margin) != 1 or shape_of(nodes[0]) != shape_of(nodes[1]):
        return
    far, near = saved(margin[0], "condition"), saved(distance[0], "condition")
    if any(one is None or not has_values(one) or not _FEW <= one.numel() <= _MANY for one in (far, near)):
        return
    kept, pulled = float(far.float().mean()), float(near.float().mean())
    if kept == 0 and _LEAST_PART <= pulled <= 1 - _LEAST_PART:
        yield "cosine embedding", round(100 * (1 - pulled))
    elif pulled == 1 and _LEAST_PART <= kept <= 1 - _LEAST_PART:
        yield "hinge embedding", round(100 * kept)
    elif far.shape == near.shape and bool((far ^ near).all()):
        yield "embedding", 0


def _is_margin(node: Any) -> bool:
    """Return True for a choice between values above zero and zero."""
    inner = [following for following, _ in node.next_functions if following is not None]
    return len(inner) == 1 and inner[0].name() == "ClampMinBackward0"


def _is_above_zero(node: Any, name: str) -> bool:
    """Return True for the larger one of a value and zero."""
    if name == "MaximumBackward0":
        known = [place for place, (following, _) in enumerate(node.next_functions) if following is not None]
        zeros = saved(node, "other" if known == [0] else "self") if len(known) == 1 else None
        return zeros is not None and has_values(zeros) and not bool(zeros.any())
    if name == "ReluBackward0":
        return True
    least = getattr(node, "_saved_min", None)
    return type(least) in (int, float) and least == 0 and getattr(node, "_saved_max", None) is None


def _behind_shift(node: Any) -> Any:
    """Return the operation before a margin of one number, which is added or from which a product is subtracted."""
    inner = [following for following, _ in node.next_functions if following is not None]
    if len(inner) != 1:
        return None
    shifted = [following for following, _ in inner[0].next_functions if following is not None]
    return shifted[0] if str(inner[0].name()) in _SHIFTS and len(shifted) == 1 else None


def _factor(node: Any) -> Any:
    """Return the constants that multiply scores, one for each; None for other operations."""
    if node is None or node.name() != "MulBackward0" or len(node.next_functions) != _PAIR:
        return None
    known = [place for place, (following, _) in enumerate(node.next_functions) if following is not None]
    factor = saved(node, "other" if known == [0] else "self") if len(known) == 1 else None
    return factor if factor is not None and tuple(factor.shape) == shape_of(node) else None
