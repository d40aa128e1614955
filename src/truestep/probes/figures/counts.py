"""Predictions and targets of an evaluation, counted by class, for statements of any form behind its calls.

The predictions of a call are the largest scores of its result. Its targets are among the variables beside the call:
classes, or zeros and ones, with the shape of the predictions. Where several variables have it, each is counted.
Counts stay on the device of the result until they are read, after the evaluation.
"""

from __future__ import annotations

import ast
import functools
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

from truestep.probes.context.local_variables import variables
from truestep.probes.context.values import has_values
from truestep.probes.evaluation.quotients import body_of, value

_MOST_CLASSES = 100
_LARGEST = 1 << 20
"""Numbers of a result."""
_MOST_TARGETS = 4
"""Variables beside a call that can be its targets."""
_MOST_PARTS = 8
"""Parts of a batch that a variable holds."""
_MOST_SELECTIONS = 16
_MOST_CALLS = 512
_MOST_GROUPS = 6
_LEAST = 8
_LEAST_BATCHES, _MOST_BATCHES = 4, 64
_MOST_BATCH_CLASSES = 10
_WITHIN = 0.5
"""Least share of targets that are classes of the result; others are padding."""


Classes = tuple[tuple[int, int, int], ...]


class Group(NamedTuple):
    """Counts of the calls of one evaluation.

    Attributes:
        samples: number of predictions of each class or label.
        classes: for each class true positives, false positives and false negatives.
        batches: the same of each batch of a loader, of which all but the last are of one size; else empty.
    """

    samples: int
    classes: Classes
    batches: tuple[Classes, ...] = ()


@dataclass(slots=True)
class _Call:
    """A call of a model in an evaluation."""

    origin: tuple[int, int | None, int]
    """Model, loader and frame."""
    rows: int
    counts: dict[str, Any] = field(default_factory=dict)
    """Variable with targets to counts: three for each class, then classes, targets within them, and targets."""


class Counts:
    """Counts predictions by class.

    Args:
        torch: the module.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._calls: list[_Call] = []
        self.whole = True
        """False if a call was left out."""

    def called(self, model: int, loader: int | None, frame: FrameType, result: Any) -> None:
        """Count the predictions of a call.

        Args:
            model: number of the model.
            loader: number of the latest loader.
            frame: the user's frame.
            result: the first tensor of the result, without a graph.
        """
        call = _Call((model, loader, id(frame)), int(result.shape[0]))
        self._calls.append(call)
        if len(self._calls) > _MOST_CALLS or result.numel() > _LARGEST or not has_values(result):
            self.whole = False
            return
        for name, target in self.targets(frame, call.rows):
            counted = self._counted(result, target.to(result.device))
            if counted is not None:
                call.counts[name] = counted
            if len(call.counts) == _MOST_TARGETS:
                return

    def targets(self, frame: FrameType, rows: int) -> Iterator[tuple[str, Any]]:
        """Yield the variables that a frame reads or stores with a row for each prediction."""
        held = variables(frame) if frame.f_code.co_flags & 1 else frame.f_globals
        known = frame.f_globals
        parts: list[tuple[str, Any]] = []
        for name in _names(frame.f_code):
            one: Any = held.get(name, known.get(name))
            if type(one) in (list, tuple) and len(one) <= _MOST_PARTS:
                parts += [(f"{name}[{place}]", part) for place, part in enumerate(one)]
            elif type(one) is dict and len(one) <= _MOST_PARTS:
                parts += [(f"{name}[{key!r}]", part) for key, part in list(one.items())]
            yield from self._with_rows([(name, one)], rows)
        yield from self._with_rows(parts, rows)  # last, since a list can collect the batches
        first = frame.f_code.co_firstlineno if frame.f_code.co_flags & 1 else 0
        for node in _selections(frame.f_code.co_filename, first):
            try:
                part = self._selected(node, ChainMap(held, known))
            except Exception:  # the rows of another moment, or of another length
                continue
            yield from self._with_rows([(ast.unparse(node), part)], rows)

    def _with_rows(self, parts: list[tuple[str, Any]], rows: int) -> Iterator[tuple[str, Any]]:
        torch = self._torch
        for text, part in parts:
            tensor = type(part) is torch.Tensor
            if not (tensor or _is_array(part)) or not len(part.shape) or len(part) != rows:
                continue
            if tensor and has_values(part):
                yield text, part.detach()
            elif not tensor and part.dtype.kind in "fiub" and part.size <= _LARGEST:
                yield text, torch.as_tensor(part.copy())  # its memory may be read-only

    def _selected(self, node: ast.Subscript, names: Mapping[str, Any]) -> Any:
        """Return rows of a tensor or an array, by a slice or by an index in a variable; None for others."""
        whole: Any = names.get(node.value.id)  # type: ignore[attr-defined]
        if not (type(whole) is self._torch.Tensor or _is_array(whole)) or not len(whole.shape):
            return None
        if isinstance(node.slice, ast.Slice):
            ends = [_end(self._torch, end, names) for end in (node.slice.lower, node.slice.upper)]
            return whole[slice(*ends)]
        index: Any = names.get(node.slice.id)  # type: ignore[attr-defined]
        plain = (type(index) is self._torch.Tensor and index.is_cpu) or _is_array(index)
        return whole[index] if type(index) is slice or (plain and len(index.shape) == 1) else None

    def _counted(self, scores: Any, target: Any) -> Any:
        """Return the counts of predictions beside some targets; None if they do not fit together."""
        torch = self._torch
        whole = not target.is_floating_point() and not target.is_complex()
        for dim in (1, -1) if whole else ():
            if scores.dim() < 2 or not 1 < scores.shape[dim] <= _MOST_CLASSES:
                continue
            classes = int(scores.shape[dim])
            shape = [size for place, size in enumerate(scores.shape) if place != dim % scores.dim()]
            if list(target.shape) in (shape, [*shape, 1]) and target.numel() >= 1:
                return self._confused(scores.argmax(dim), target.reshape(shape).long(), classes)
        if target.numel() != scores.numel() or not (target.is_floating_point() or whole):
            return None
        within = ((scores >= 0) & (scores <= 1)).all()
        chosen = torch.where(within, scores > 1 / 2, scores > 0)
        if scores.dim() == 2 and 1 < scores.shape[1] <= _MOST_CLASSES and target.shape == scores.shape:
            return self._labelled(chosen, target)
        zero_or_one = (target == 0) | (target == 1)
        classes = torch.where(zero_or_one, target, torch.full_like(target, -1)).long()
        return self._confused(chosen.reshape(-1).long(), classes.reshape(-1), 2)

    def _confused(self, predicted: Any, target: Any, classes: int) -> Any:
        torch, count = self._torch, classes * classes
        within = (target >= 0) & (target < classes)
        cell = torch.where(within, target * classes + predicted, torch.full_like(target, count)).reshape(-1)
        table = torch.zeros(count + 1, dtype=torch.int64, device=cell.device)
        table = table.scatter_add(0, cell, torch.ones_like(cell))[:count].reshape(classes, classes)
        right = table.diagonal()
        return self._joined([right, table.sum(0) - right, table.sum(1) - right], within.sum(), target.numel())

    def _labelled(self, chosen: Any, target: Any) -> Any:
        asked, within = target == 1, ((target == 0) | (target == 1)).all(1)
        kept = within.unsqueeze(1)
        parts = [(chosen & asked & kept).sum(0), (chosen & ~asked & kept).sum(0), (~chosen & asked & kept).sum(0)]
        return self._joined(parts, within.sum(), len(within))

    def _joined(self, parts: list[Any], within: Any, count: int) -> Any:
        ends = [within.reshape(1), self._torch.full((1,), count, dtype=self._torch.int64, device=within.device)]
        return self._torch.cat([*parts, *ends])

    def groups(self) -> tuple[Group, ...]:
        """Return the counts of each evaluation, and of all together, for each variable that can be the targets."""
        if not self.whole or not self._calls:
            return ()
        groups: list[list[_Call]] = []
        for call in self._calls:
            before = groups[-1][-1] if groups else None
            if before is None or call.origin != before.origin or call.rows > before.rows:
                groups.append([])
            groups[-1].append(call)
        several = len(groups) > 1
        found = [one for calls in groups[-_MOST_GROUPS:] for one in self._sums(calls)]
        return tuple(dict.fromkeys([*found, *(self._sums(self._calls) if several else ())]))

    def _sums(self, calls: list[_Call]) -> Iterator[Group]:
        names = set(calls[0].counts).intersection(*(call.counts for call in calls))
        for name in sorted(names):
            parts = [call.counts[name] for call in calls]
            if len({len(part) for part in parts}) != 1:
                continue
            stacked = self._torch.stack(parts)
            *counts, within, count = stacked.sum(0).tolist()
            if within >= max(_LEAST, _WITHIN * count):
                few = len(counts) <= 3 * _MOST_BATCH_CLASSES and within == count
                each = stacked[:, :-2].tolist() if few and _is_in_batches(calls) else ()
                yield Group(within, _by_class(counts), tuple(map(_by_class, each)))


def _is_in_batches(calls: list[_Call]) -> bool:
    """Return True for the batches of one loader, of one size; groups of a person or a picture each are not."""
    (*sizes, last), loaders = [call.rows for call in calls], {call.origin for call in calls}
    several = _LEAST_BATCHES <= len(calls) <= _MOST_BATCHES and len(loaders) == 1 and calls[0].origin[1] is not None
    return several and len(set(sizes)) == 1 and sizes[0] > 1 and last <= sizes[0]


def _by_class(counts: list[int]) -> Classes:
    third = len(counts) // 3
    return tuple(zip(counts[:third], counts[third : 2 * third], counts[2 * third :], strict=True))


@functools.lru_cache(maxsize=64)
def _selections(path: str, first: int) -> tuple[ast.Subscript, ...]:
    """Return the expressions of a function that take rows of a variable: ``y[chosen]``, ``y[start : start + 64]``."""
    found: dict[str, ast.Subscript] = {}
    for node in body_of(path, first):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            plain = isinstance(node.slice, ast.Slice) and node.slice.step is None
            if plain or isinstance(node.slice, ast.Name):
                found.setdefault(ast.unparse(node), node)
    return tuple(found.values())[:_MOST_SELECTIONS]


def _end(torch: Any, node: ast.expr | None, names: Mapping[str, Any]) -> int | None:
    """Return an end of a slice; None for an open one.

    Raises:
        ValueError: it is not known.
    """
    found = None if node is None else value(torch, node, names)
    if node is not None and found is None:
        raise ValueError
    return None if found is None else int(found)


def _is_array(part: Any) -> bool:
    return type(part).__module__ == "numpy" and type(part).__name__ == "ndarray"


def _names(code: CodeType) -> tuple[str, ...]:
    """Return the variables and the global names of a function, or of a module."""
    return tuple(dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars, *code.co_names)))
