"""The usual figures of predicted classes, by the counts of each class, and the mistakes that lead to others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

Class = tuple[int, int, int]
"""True positives, false positives and false negatives of a class."""
_Ratio = Callable[[Class, int], tuple[float, float]]
"""Returns numerator and denominator of a figure, by the counts of a class and the number of predictions."""

_RATIOS: dict[str, _Ratio] = {
    "recall": lambda one, n: (one[0], one[0] + one[2]),
    "precision": lambda one, n: (one[0], one[0] + one[1]),
    "f1": lambda one, n: (2 * one[0], 2 * one[0] + one[1] + one[2]),
    "iou": lambda one, n: (one[0], sum(one)),
    "specificity": lambda one, n: (n - sum(one), n - one[0] - one[2]),
}
_WORDS = {
    "recall": "the recall", "precision": "the precision", "f1": "the F1 score", "iou": "the intersection over union",
    "specificity": "the specificity", "mean": "the mean of precision and recall", "half": "half of the F1 score",
    "share": "the true positives divided by all samples",
}  # fmt: skip
_MADE = {
    ("f1", "precision"): ": false negatives are counted as false positives are",
    ("f1", "recall"): ": false positives are counted as false negatives are",
}
FORMULAS = {
    "recall": "TP / (TP + FN), the images of a class in the denominator",
    "precision": "TP / (TP + FP), the predictions of a class in the denominator",
    "f1": "2 TP / (2 TP + FP + FN)",
    "iou": "TP / (TP + FP + FN)",
    "specificity": "TN / (TN + FP)",
    "balanced": "the mean recall of the classes, TP / (TP + FN)",
}
"""Remedy of each figure."""
_EXACT = 2e-6
"""Difference up to which a value is a figure; float32 has seven digits."""
_NEAR = 2e-3
"""Difference up to which a value can be a rounded figure, or one with a smoothing term."""
_MACRO = ("macro", "macro of defined", "macro of present")
_BINARY = 2
_OF_BATCHES = {"recall": "recalls", "precision": "precisions", "f1": "F1 scores"}
_LEAST_BATCHES = 8
_APART = 0.05
"""Least difference between a figure and its mean over batches that leads to other conclusions."""
_LEAST_SAMPLES = 20
_STRONG_CLASSES = 3
_STRONG_SAMPLES = 50
"""Least number of classes and samples at which one mean over classes excludes a coincidence."""


class Judgement(NamedTuple):
    """A judgement of the numbers of a figure.

    Attributes:
        right: True if they are the figure that their name claims.
        what: another figure that they are; "" for none, or if they are both.
        strong: True if a coincidence is excluded.
        label: the numbers of the claimed figure beside them.
        of: the counts of the right figure, for its remedy.
    """

    right: bool
    what: str = ""
    strong: bool = False
    label: str = ""
    of: str = ""


def judged(
    claim: str,
    values: tuple[float, ...],
    counts: tuple[tuple[int, tuple[Class, ...]], ...],
    batches: tuple[tuple[tuple[Class, ...], ...], ...] = (),
) -> Judgement:
    """Return the judgement of a figure.

    Args:
        claim: the figure that its name claims.
        values: its numbers.
        counts: for each evaluation the number of predictions, and the counts of each class.
        batches: for each evaluation the counts of its batches, if they are known.

    >>> classes = ((8, 1, 2), (5, 5, 1), (4, 3, 6))
    >>> judged("recall", (8 / 10, 5 / 6, 4 / 10), ((26, classes),)).right
    True
    >>> judged("recall", (8 / 9, 5 / 10, 4 / 7), ((26, classes),)).what
    'the precision'
    """
    figure = "recall" if claim == "balanced" else claim
    found = [_judged(figure, values, samples, classes) for samples, classes in counts if samples >= _LEAST_SAMPLES]
    exact = [one for one in found if one.right and one.strong]
    wrong = [one for one in found if one.what]
    if not (wrong or any(one.right for one in found)) and len(values) == 1:
        pairs = zip(counts, batches, strict=False)
        wrong = [one for (n, of), each in pairs if (one := _of_batches(claim, values[0], n, of, each)).what]
    if exact or not wrong:
        return Judgement(any(one.right for one in found) and not (exact and wrong))
    return wrong[0]


def _judged(figure: str, values: tuple[float, ...], samples: int, classes: tuple[Class, ...]) -> Judgement:
    """Return the judgement beside one evaluation; a figure that is right to six digits is strong."""
    kinds = [kind for kind in (*_RATIOS, "mean", "half", "share") if kind != figure and _is_possible(figure, kind)]
    if len(values) == len(classes) > 1:
        return _of_each(figure, kinds, values, samples, classes)
    if values[-1] in (0, 1, 100):  # also of classes that are always, or never, predicted
        return Judgement(False)
    usual = list(_usual(figure, samples, classes))
    if any(_is(values[-1], one, _EXACT) for one in usual):
        return Judgement(True, strong=True)
    rights = dict(_means(figure, samples, classes))
    for kind in kinds:
        for mean, value in _means(kind, samples, classes):
            right = rights.get(mean)
            if right is not None and _is(values[-1], value, _EXACT):
                if _is(values[-1], right, _NEAR):  # both are almost equal
                    return Judgement(False)
                strong = mean in _MACRO and len(classes) >= _STRONG_CLASSES and samples >= _STRONG_SAMPLES
                return Judgement(False, _named(figure, kind), strong, f"{values[-1]:.4g}, where {right:.4g} is right")
    return Judgement(any(_is(values[-1], one, _NEAR) for one in usual))


def _of_batches(
    claim: str, value: float, samples: int, classes: tuple[Class, ...], batches: tuple[tuple[Class, ...], ...]
) -> Judgement:
    """Return the judgement of a number that can be the mean of a figure over batches, some without a positive."""
    without = any(not right + missed for one in batches for right, _, missed in one)
    if claim not in _OF_BATCHES or len(batches) < _LEAST_BATCHES or not without:
        return Judgement(False)
    rights = dict(_means(claim, samples, classes))
    each = [dict(_means(claim, sum(right + missed for right, _, missed in one), one)) for one in batches]
    for mean, right in rights.items():
        defined = [one[mean] for one in each if mean in one]
        for number in (sum(defined) / len(each), sum(defined) / max(1, len(defined))):
            if _is(value, number, _EXACT) and not _is(value, right, _APART):
                label = f"{value:.4g}, where {right:.4g} is right"
                what = f"the mean of the {_OF_BATCHES[claim]} of {len(each)} batches"
                return Judgement(False, what, True, label, ", with sums over all batches")
    return Judgement(False)


def _of_each(
    figure: str, kinds: list[str], values: tuple[float, ...], samples: int, classes: tuple[Class, ...]
) -> Judgement:
    """Return the judgement of numbers of the classes."""
    right = [_share(figure, one, samples) for one in classes]
    if _all_are(values, right, _EXACT):
        return Judgement(True, strong=True)
    for kind in kinds:
        other = [_share(kind, one, samples) for one in classes]
        beside = list(zip(values, right, strict=True))
        far = [place for place, (value, one) in enumerate(beside) if one is not None and not _is(value, one, _NEAR)]
        several = len(set(values)) >= min(_STRONG_CLASSES, len(classes))
        if far and several and _all_are(values, other, _EXACT):
            label = f"{values[far[0]]:.4g} for class {far[0]}, where {right[far[0]]:.4g} is right"
            return Judgement(False, _named(figure, kind), samples >= _STRONG_SAMPLES, label)
    return Judgement(_all_are(values, right, _NEAR))


def _named(figure: str, kind: str) -> str:
    return _WORDS[kind] + _MADE.get((figure, kind), "")


def _is_possible(figure: str, kind: str) -> bool:
    return kind not in ("mean", "half") or figure == "f1"


def _share(kind: str, one: Class, samples: int) -> float | None:
    """Return a figure of a class; None if it is not defined."""
    if kind == "share":
        return one[0] / samples
    if kind in ("mean", "half"):
        precision, recall = _share("precision", one, samples), _share("recall", one, samples)
        if precision is None or recall is None or not precision + recall:
            return None
        return (precision + recall) / 2 if kind == "mean" else precision * recall / (precision + recall)
    upper, lower = _RATIOS[kind](one, samples)
    return upper / lower if lower else None


def _means(kind: str, samples: int, classes: tuple[Class, ...]) -> Iterator[tuple[str, float]]:
    """Yield the figure of all classes, by the kind of its mean, and that of each class."""
    each = [_share(kind, one, samples) for one in classes]
    defined = [one for one in each if one is not None]
    present = [one or 0.0 for one, (right, _, missed) in zip(each, classes, strict=True) if right + missed]
    if defined and len(classes) > 1:
        yield "macro", sum(defined) / len(classes)
        yield "macro of defined", sum(defined) / len(defined)
        if present:
            yield "macro of present", sum(present) / len(present)
    for place, one in enumerate(each if len(classes) == _BINARY else ()):
        if one is not None:
            yield f"class {place}", one


def _usual(figure: str, samples: int, classes: tuple[Class, ...]) -> Iterator[float]:
    """Yield the usual forms of a figure: of each class, and means over classes of all kinds."""
    yield from (one for one in (_share(figure, each, samples) for each in classes) if one is not None)
    for part in (classes, classes[1:]):
        if part:
            yield from (value for _, value in _means(figure, samples, part))
            upper, lower = (sum(one) for one in zip(*(_RATIOS[figure](one, samples) for one in part), strict=True))
            yield upper / lower if lower else 0.0
            supports = [right + missed for right, _, missed in part]
            weighted = sum((_share(figure, one, samples) or 0.0) * of for one, of in zip(part, supports, strict=True))
            yield weighted / max(1, sum(supports))
            if figure == "f1":
                precisions = list(_means("precision", samples, part))
                recalls = dict(_means("recall", samples, part))
                for mean, precision in precisions:
                    recall = recalls.get(mean, 0.0)
                    yield 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    if figure == "recall":  # the accuracy is the mean recall, weighted by the samples of each class
        yield sum(right for right, _, _ in classes) / samples


def _all_are(values: tuple[float, ...], others: list[float | None], tolerance: float) -> bool:
    """Return True if the numbers of the classes are these, where they are defined."""
    return sum(one is not None for one in others) > 1 and all(
        other is None or _is(value, other, tolerance) for value, other in zip(values, others, strict=True)
    )


def _is(value: float, other: float, tolerance: float) -> bool:
    """Return True if a value is another one, also in percent."""
    return any(abs(value - scale * other) <= tolerance * scale for scale in (1, 100))
