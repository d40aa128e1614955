"""Rows of a result that the loss chooses, and those that an evaluation chooses: of a graph, or of a whole table.

The gradient of a result shows which of its rows are in the loss, in any form of the loss. Its direction shows their
targets: a step raises the score of the right class. Seam: the hook that follows the gradients of results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

from truestep.events import Event, ResultRowsScored, Site
from truestep.probes.context.local_variables import argument
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import Call
from truestep.probes.variables.arrays import named

_LEAST = 8
_MOST = 1 << 16
_MOST_STEPS = 12
_MOST_MODELS = 8
_MOST_GIVEN = 8
_ROWS, _READ = 16, 64
"""Number of rows and elements of an argument that show whether two calls have the same."""
_EARLY = 4
"""Steps in which the gradients of rows must be towards their targets: predictions of a teacher become right later."""
_AGREED = 0.97
"""Least share of the rows of each class with a gradient towards it."""


class Leaning(NamedTuple):
    """The direction of the gradient of a result."""

    best: Any
    """The class that each row is moved to; of a single column, whether its values are to grow."""
    values: Any
    """Values of a single column; None with more of them."""

    def on_cpu(self) -> Leaning:
        """Return the same on the CPU."""
        return Leaning(self.best.cpu(), None if self.values is None else self.values.cpu())


@dataclass(slots=True)
class _Trained:
    """The rows of the results of one model with a gradient, at sampled steps."""

    given: frozenset[Any]
    rows: int
    optimizers: int
    any: Any = None
    """True for each row with a gradient at any step."""
    steps: list[tuple[Any, Leaning]] = field(default_factory=list)
    """At each step, the rows with a gradient, and its direction."""


class ChosenRows:
    """Returns `ResultRowsScored`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._trained: dict[int, _Trained] = {}
        self._loss: Site | None = None
        self._given: frozenset[Any] = frozenset()

    def computed(self, site: Site | None) -> None:
        """Handle a loss of training."""
        self._loss = site

    def trained(self, model: int, given: frozenset[Any], alive: Any, leaning: Leaning, loss: Site | None) -> None:
        """Record the rows of a result with a gradient.

        Args:
            model: number of the model.
            given: the arguments of its call.
            alive: True for each row with a gradient, on the CPU.
            leaning: direction of the gradient.
            loss: line of the backward pass.
        """
        rows, optimizers = len(alive), self._scene.numbers.count("optimizer")
        one = self._trained.get(model)
        if one is None and len(self._trained) >= _MOST_MODELS:
            return
        if one is None or one.rows != rows or one.optimizers != optimizers or not _same(one.given, given):
            one = self._trained[model] = _Trained(given, rows, optimizers)
        one.any = alive if one.any is None else one.any | alive
        del one.steps[_MOST_STEPS - 1 :]
        one.steps.append((alive, leaning))
        self._loss = self._loss or loss

    def evaluated(self, given: frozenset[Any]) -> None:
        """Handle the arguments of a call with a result that is compared."""
        self._given = given

    def scored(
        self, model: int, rows: Any, samples: int, target: Any, by: tuple[Any, str], frame: FrameType, site: Site
    ) -> Event | None:
        """Return the event for rows of a result that are compared with targets; None if nothing is known of them.

        Args:
            model: number of the model.
            rows: numbers of the rows.
            samples: number of all rows of the result.
            target: the targets, with a row for each.
            by: the index that selected the rows, with its source.
            frame: torch's frame of the call.
            site: line of the comparison.
        """
        one = self._trained.get(model)
        if one is None or one.rows != samples or not _LEAST <= len(rows) < samples or not _same(one.given, self._given):
            return None
        if len(rows.unique()) < len(rows):
            return None
        target = target.detach().cpu() if hasattr(target, "detach") else self._scene.torch.as_tensor(target)
        target = target.reshape(len(rows), -1).double()
        if target.shape[1] != 1 or len(target.unique()) < 2:
            return None
        index, text = by
        names = tuple(dict.fromkeys(named(self._scene, self._scene.sites.users(frame), index)))
        return self._scene.event(
            ResultRowsScored,
            model=model,
            name=names[0] if names else text,
            names=(*names, text),
            samples=len(rows),
            rows=samples,
            trained=int(one.any.sum()),
            hits=int(one.any[rows].sum()),
            agreed=self._agree(one, rows, target[:, 0]),
            loss=self._loss,
            site=site,
        )

    def _agree(self, one: _Trained, rows: Any, target: Any) -> bool:
        """Return True if the gradients of these rows are towards their targets, in each class, from the first step."""
        shares: list[float] = []
        if not bool(one.steps[0][0][rows].any()):
            return False
        for alive, leaning in one.steps[:_EARLY]:
            on = alive[rows]
            if not bool(on.any()):
                continue
            best, wanted = leaning.best[rows][on], target[on]
            if leaning.values is None:
                shares.append(_least_share(best == wanted, wanted))
            else:
                up = wanted > leaning.values[rows][on]
                binary = len(wanted.unique()) < 3
                as_classes = _least_share(best == (wanted > wanted.min()), wanted) if binary else 0.0
                shares.append(max(as_classes, _least_share(best == up, up)))
        return bool(shares) and min(shares) >= _AGREED


def _least_share(right: Any, groups: Any) -> float:
    """Return the mean over the groups of their shares of right values."""
    shares = [float(right[groups == group].double().mean()) for group in groups.unique().tolist()]
    return sum(shares) / len(shares) if len(shares) > 1 else 0.0


def leaning(gradient: Any, result: Any) -> Leaning | None:
    """Return the direction of the gradient of a result with a row for each sample; None for other results."""
    if not _LEAST < len(gradient) <= _MOST or gradient.dim() > 2:
        return None
    if gradient.dim() == 2 and gradient.shape[1] > 1:
        return Leaning(gradient.argmin(1), None)
    return None if result is None else Leaning(gradient.reshape(-1) < 0, result)


def column_of(result: Any) -> Any:
    """Return a copy of the values of a result with a single column; None for another one."""
    single = result.numel() == len(result) <= _MOST
    return result.detach().reshape(-1).clone() if single else None


def arguments(frame: FrameType, torch: Any, rows: int) -> frozenset[Any]:
    """Return keys of the tensors with so many rows among the arguments of the call in torch's frame."""
    args, kwargs = argument(frame, "args"), argument(frame, "kwargs")
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        return frozenset()
    return frozenset(_keys(Call(args, kwargs), torch, rows))


def _keys(call: Call, torch: Any, rows: int) -> Iterator[Any]:
    for value in [*call.tensors(torch).values()][:_MOST_GIVEN]:
        plain = value.layout is torch.strided and not value.is_quantized and has_values(value)
        if plain and value.dim() > 1 and len(value) == rows and not value.requires_grad:
            flat = value.detach()[:: max(1, rows // _ROWS)][:_ROWS].reshape(-1)
            some = flat[:: max(1, len(flat) // _READ)][:_READ]
            yield tuple(value.shape), tuple(some.cpu().tolist())


def _same(one: frozenset[Any], other: frozenset[Any]) -> bool:
    """Return True if two calls have an argument in common; without any to compare, the targets decide."""
    return not one or not other or bool(one & other)
