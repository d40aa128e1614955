"""Scales of an evaluation: predictions and targets next to the targets of the training, padding, and thresholds."""

from __future__ import annotations

import ast
import re
from typing import Any

from truestep import source
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.evaluation.values import Made

_LARGEST = 1 << 18
_LEAST = 20
_MOST = 64
"""Looks at targets of the training."""
_FOLLOWS = 0.9
"""Correlation from which predictions follow the targets."""
_FAR = 4.0
"""Squared error, in variances of the targets, that no mistake of the model itself explains beside it."""
_ANOTHER = 3.0
"""Ratio of two scales, or distance in spreads, from which they are not of the same kind of numbers."""
_LEAST_PADDING = 10
_BINARY = 2
_ON_PURPOSE = re.compile(r"bias|drift|calib|offset|shift|balance|conserv")
"""Figures that are the size of a mean difference."""


_HALF = 0.5
_THRESHOLD = re.compile(r"thr|cut")
"""Names of thresholds."""


class Scales:
    """Compares the scales of predictions and targets.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._count = self._sum = self._square = 0.0
        self._looks = 0
        self._ignored: set[int] = set()
        """Classes that the losses of the training leave out."""

    def learned(self, target: Any, ignored: int | None) -> None:
        """Read the targets of a loss of the training, at a sampled step."""
        if self._looks >= _MOST or type(target) is not self._scene.torch.Tensor or not has_values(target):
            return
        self._looks += 1
        if ignored is not None:
            self._ignored.add(ignored)
        elif target.is_floating_point() and 0 < target.numel() <= _LARGEST:
            with self._scene.sampling.timed(target):
                values = target.detach().double()
                self._count += values.numel()
                self._sum += float(values.sum())
                self._square += float(values.square().sum())

    def judged(self, how: str, made: Made) -> tuple[str, dict[str, Any]]:
        """Return the mistake of sizes of differences ("size"), or of an average of comparisons, with facts about it."""
        predicted, target = made.pair or (None, None)
        tensor = self._scene.torch.Tensor
        if not isinstance(predicted, tensor) or not isinstance(target, tensor):
            return "", {}
        if how == "averaged":
            return self._padded(target)
        return self._scaled(predicted, target) if made.kind == "error" else ("", {})

    def _padded(self, target: Any) -> tuple[str, dict[str, Any]]:
        """Return "padding" if a share of the targets is the class that each loss of the training leaves out."""
        if target.is_floating_point() or len(self._ignored) != 1 or target.numel() < _LEAST:
            return "", {}
        (ignored,) = self._ignored
        share = round(100 * float((target == ignored).double().mean()))
        return ("padding", {"outside": share}) if share >= _LEAST_PADDING else ("", {})

    def _scaled(self, predicted: Any, target: Any) -> tuple[str, dict[str, Any]]:
        """Return "scale" if predictions follow their targets on another scale, which that of the training is not."""
        if not self._count or predicted.numel() != target.numel() or not _LEAST <= target.numel() <= _LARGEST:
            return "", {}
        one, two = predicted.detach().double().reshape(-1), target.detach().double().reshape(-1)
        means, spreads = (float(one.mean()), float(two.mean())), (float(one.std()), float(two.std()))
        if not min(spreads) > 0 or not max(*map(abs, means), *spreads) < float("inf"):
            return "", {}
        follows = float(((one - means[0]) * (two - means[1])).mean()) / (spreads[0] * spreads[1])
        far = float((one - two).square().mean()) / spreads[1] ** 2
        trained = self._sum / self._count
        spread = max(self._square / self._count - trained**2, 0.0) ** 0.5
        if follows < _FOLLOWS or far < _FAR or not _differ((means[1], spreads[1]), (trained, spread)):
            return "", {}
        return "scale", {"spreads": tuple(float(f"{number:.3g}") for number in (
            means[0], spreads[0], means[1], spreads[1], trained, spread
        ))}  # fmt: skip


def cancels(pair: tuple[Any, Any] | None, torch: Any, line: str) -> bool:
    """Return True if both signs of errors cancel by mistake: not in a bias or a calibration, by its line or targets."""
    if pair is None or not isinstance(pair[1], torch.Tensor) or len(pair[1].unique()) <= _BINARY:
        return False
    return _ON_PURPOSE.search(line.lower()) is None


def is_written(threshold: float, node: ast.expr, path: str) -> bool:
    """Return True if the source of a comparison has its threshold as a number, and no search or computation makes it.

    A variable must have this number as its only value, or as its default; an attribute, such as one of a
    configuration, must be called a threshold and be 0.5.
    """
    tree = source.parsed(path)
    sides = (node.left, *node.comparators) if isinstance(node, ast.Compare) else getattr(node, "args", ())
    for side in sides:
        match side:
            case ast.Constant(value=float() as value) if value == threshold:
                return True
            case ast.Name(id=name) if tree is not None and _values_of(name, tree) == {threshold}:
                return True
            case ast.Attribute(attr=name) if threshold == _HALF and _THRESHOLD.search(name.lower()):
                return True
    return False


def _values_of(name: str, tree: ast.Module) -> set[float | None]:
    """Return the numbers that a file assigns to a variable or gives as its default; None for any other value."""
    found: set[float | None] = set()
    stores = 0
    for node in source.walk(tree):
        match node:
            case ast.Name(id=known, ctx=ast.Store()) if known == name:
                stores += 1
            case ast.Assign(targets=[ast.Name(id=known)], value=value) if known == name:
                found.add(_number(value))
                stores -= 1
            case ast.arguments(posonlyargs=first, args=args, defaults=defaults, kwonlyargs=more, kw_defaults=others):
                places = [*first, *args]
                given = [*[None] * (len(places) - len(defaults)), *defaults, *others]
                found |= {_number(value) for one, value in zip([*places, *more], given, strict=True) if one.arg == name}
            case ast.keyword(arg=known, value=value) if known == name:
                found.add(_number(value))
    return found | ({None} if stores else set())


def _number(node: ast.expr | None) -> float | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is float else None


def _differ(one: tuple[float, float], two: tuple[float, float]) -> bool:
    """Return True if two means with their spreads are of different kinds of numbers."""
    if not one[1] or not two[1]:
        return False
    ratio = one[1] / two[1]
    return max(ratio, 1 / ratio) > _ANOTHER or abs(one[0] - two[0]) > _ANOTHER * max(one[1], two[1])
