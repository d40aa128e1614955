"""Targets of a loss next to the features that its model was called on: one feature that is the target itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import CheckSkipped, Site, TargetsCompared
from truestep.probes.active import restored_states
from truestep.probes.active.trial import Trial, own
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import Call, Path, called
from truestep.probes.copies.objects import Refused, copy_of
from truestep.probes.variables.origins import target_made_at
from truestep.seams.refs import Ref

_SEED = 3_456_711
_LARGEST = 1 << 18
_LEAST_ROWS = 8
_MOST_FEATURES = 256
_MOST_TARGETS = 64
_LEAST_STEPS = 3
_MOST_STEPS = 12
_LEAST_SEEN = 96
"""Least number of rows: a binary feature can be the target of a few by chance."""
_MOST_MODELS = 8
_EXACT = 1e-7
_OF_SLOPE = 1e-2
_INFORMED = 0.1
_DETERMINED = 0.98
_MOST_ROWS = 512
_RIDGE = 1e-6


@dataclass(slots=True)
class _Called:
    """A call of training on features."""

    module: Ref
    model: int
    call: Call
    site: Site | None


@dataclass(slots=True)
class _Seen:
    """Features of a model that were a target of its in every batch, and these batches."""

    path: Path
    slopes: dict[int, float]
    """Feature to its change for a change of the target by one."""
    of: int = 0
    """Number of the target among several."""
    rows: list[tuple[Any, Any]] = field(default_factory=list)
    """Features and targets of each batch."""


class TargetColumns:
    """Emits `TargetsCompared` for a target that is a feature, scaled or shifted.

    Of several targets of each row, as of the next hours, a few must be features: most of them are in a reconstruction.
    They are at most half as many as the features: more are the next state, or begin with the known one.

    Data of such a target by chance or on purpose are excluded by the other features: they predict the target in part,
    neither not at all, as in a test of a memory, nor fully, as in a series without noise.

    Args:
        scene: the scene.
        aside: returns the context manager in which copies run.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._call: _Called | None = None
        self._seen: dict[int, _Seen] = {}
        self._done: set[int] = set()
        """Models that were checked, or with a target that is not a feature."""

    def returned(self, module: Any, model: int, site: Site | None, frame: FrameType) -> None:
        """Keep the arguments of a call in training that has returned."""
        self._call = None
        if model in self._done or len(self._done | self._seen.keys() | {model}) > _MOST_MODELS:
            return
        torch = self._scene.torch
        try:
            with self._aside():
                call = called(module, frame)
                if _tables(call, torch):
                    self._call = _Called(Ref(module), model, Call(own(call.args, torch), own(call.kwargs, torch)), site)
        except Refused:
            return

    def computed(self, site: Site | None, frame: FrameType, target: Any) -> None:
        """Handle a loss of training."""
        made, self._call = self._call, None
        if made is None or not _LEAST_ROWS <= target.numel() <= _LARGEST or not _are_targets(target):
            return
        try:
            with self._aside():
                steps = target.shape[1] if target.dim() == 3 else 0
                at = self._compare(made, target.detach().reshape(len(target), -1).double().cpu(), steps)
                seen, module = self._seen.get(made.model), made.module()
                if at is None or seen is None or module is None:
                    return
                self._done.add(made.model)
                del self._seen[made.model]
                with restored_states.kept(self._scene.torch):
                    reads = self._reads(Trial(self._scene, copy_of(module, self._scene), made.call), seen.path, at)
                line = target_made_at(self._scene, frame, site)
        except Refused as refused:
            self._done.add(made.model)
            self._scene.emit(CheckSkipped(check="targets", reason=f"the model was not checked: {refused}"))
            return
        if reads:
            self._scene.emit(
                TargetsCompared(model=made.model, column=at, reads=True, site=made.site, loss=site, made=line)
            )

    def _compare(self, made: _Called, target: Any, steps: int) -> int | None:
        """Return the feature that is the target, after enough batches; each of several steps has its own columns."""
        torch, model = self._scene.torch, made.model
        tables, seen = _tables(made.call, torch), self._seen.get(model)
        if seen is None:
            known = [(path, table) for path, table in tables.items() if len(table) == len(target)]
            if (
                target.shape[1] > 1
            ):  # a state like the input, a rollout from it: several targets are features on purpose
                known = [(path, table) for path, table in known if 2 * target.shape[1] <= table.shape[1]]
            found = (
                (path, _next_window(table, target, steps) if steps else _first(table, target)) for path, table in known
            )
            seen = next((_Seen(path, slopes, of=of) for path, (slopes, of) in found if slopes), None)
        elif seen.path in tables and len(tables[seen.path]) == len(target) and seen.of < target.shape[1]:
            slopes = _slopes(tables[seen.path], target[:, seen.of])
            same = {
                at: slope
                for at, slope in seen.slopes.items()
                if at in slopes and abs(slopes[at] - slope) <= _OF_SLOPE * abs(slope)
            }
            seen = _Seen(seen.path, same, seen.of, seen.rows) if same else None
        if seen is None or len(seen.rows) == _MOST_STEPS:
            self._done.add(model)
            self._seen.pop(model, None)
            return None
        self._seen[model] = seen
        seen.rows.append((tables[seen.path], target[:, seen.of]))
        if len(seen.rows) < _LEAST_STEPS or sum(len(rows) for _, rows in seen.rows) < _LEAST_SEEN:
            return None
        return min(seen.slopes) if self._is_leak(seen) else None

    def _is_leak(self, seen: _Seen) -> bool:
        """Return True if the other features predict the target of later batches in part."""
        torch = self._scene.torch
        if len({table.shape[1] for table, _ in seen.rows}) != 1:
            return False
        table, target = torch.cat([one for one, _ in seen.rows]), torch.cat([one for _, one in seen.rows])
        other = [at for at in range(table.shape[1]) if at not in _slopes(table, target)]
        half = min(len(table) // 2, _MOST_ROWS)
        table, target = table[: 2 * half, other], target[: 2 * half]
        if not other or half < 2 * _LEAST_ROWS or not target[half:].var() > 0:
            return False
        if len(other) > half - _LEAST_ROWS:  # of a long window those that are most like the target
            near = torch.corrcoef(torch.cat([target[:half, None], table[:half]], 1).T)[0, 1:].abs().nan_to_num()
            table = table[:, near.topk((half - _LEAST_ROWS) // 2).indices]
        table = (table - table.mean(0)) / table.std(0).clamp_min(_RIDGE)
        first, rest = table[:half], table[half:]
        one = torch.ones_like(table[:, :1])
        whole = torch.cat([table, one], 1)
        square = whole[:half].T @ whole[:half] + _RIDGE * torch.eye(
            whole.shape[1], dtype=table.dtype, device=table.device
        )
        weights = torch.linalg.solve(square, whole[:half].T @ target[:half])
        guesses = whole[half:] @ weights, target[:half][torch.cdist(rest, first).argmin(1)]
        linear, nearest = (
            1 - float((guess - target[half:]).square().mean() / target[half:].var()) for guess in guesses
        )
        return linear > _INFORMED and max(linear, nearest) < _DETERMINED

    def _reads(self, trial: Trial, path: Path, at: int) -> bool:
        """Return True if the result of a copy depends on a feature."""
        value = trial.call.tensors(self._scene.torch)[path]
        other = value.clone().reshape(len(value), -1)
        other[:, at] = other[:, at].flip(0)
        plain = trial.run(_SEED)
        changed = trial.run(_SEED, trial.call.replaced({path: other.reshape(value.shape)}))
        return any(one.shape == two.shape and bool((one != two).any()) for one, two in zip(plain, changed, strict=True))


def _tables(call: Call, torch: Any) -> dict[Path, Any]:
    """Return the arguments with several features of each row, as tables of numbers."""
    return {
        path: value.detach().reshape(len(value), -1).double().cpu()
        for path, value in call.tensors(torch).items()
        if value.is_floating_point()
        and value.layout is torch.strided
        and not value.requires_grad
        and value.dim() > 1
        and len(value) >= _LEAST_ROWS
        and value.numel() <= _LARGEST
        and 1 < value.numel() // len(value) <= _MOST_FEATURES
        and has_values(value)
    }


def _are_targets(target: Any) -> bool:
    """Return True for one number for each row, or several numbers with decimals."""
    several = target.dim() in (2, 3) and target.numel() <= _MOST_TARGETS * len(target) and target.is_floating_point()
    return bool(target.dim() and (target.numel() == len(target) or several))


def _first(table: Any, targets: Any) -> tuple[dict[int, float], int]:
    """Return the features that are one of the targets, if those of at most half of the targets are, and its number."""
    found = [(slopes, of) for of, target in enumerate(targets.T) if (slopes := _slopes(table, target))]
    few = len(targets.T) == 1 or 2 * len(found) <= len(targets.T)
    return found[0] if found and few else ({}, 0)


def _next_window(table: Any, targets: Any, steps: int) -> tuple[dict[int, float], int]:
    """Return the last features of a window if they are the first step of the targets, and no other step is a feature.

    Of a reconstruction, a label window or teacher forcing, more steps are.
    """
    wide = targets.shape[1] // steps
    last = table.shape[1] - wide
    found = {of: slopes for of, target in enumerate(targets.T) if (slopes := _slopes(table, target))}
    first = steps > 2 and last > 0 and found.keys() == set(range(wide))
    same = first and all(abs(found[of].get(last + of, 0.0) - 1) <= _OF_SLOPE for of in range(wide))
    return ({last: found[0][last]}, 0) if same else ({}, 0)


def _slopes(table: Any, target: Any) -> dict[int, float]:
    """Return the features that are a target, scaled and shifted, and their change for a change of the target by one."""
    table, target = table - table.mean(0), target - target.mean()
    size = float(target.square().sum())
    if not size > 0:
        return {}
    slopes = (table * target[:, None]).sum(0) / size
    rest = (table - slopes * target[:, None]).square().sum(0)
    exact = rest <= _EXACT * table.square().sum(0)
    varied = slopes.abs() > 0
    return {int(at): float(slopes[at]) for at in (exact & varied).nonzero().flatten()}
