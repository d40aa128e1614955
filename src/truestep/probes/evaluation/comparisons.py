"""Comparisons of a model's results with targets in an evaluation: shapes, dimensions, scores for classes, other rows.

The statements after the call are repeated on copies, in the first calls of each line. Seam: the end of an outermost
module call, from the module probe.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from time import thread_time
from types import FrameType
from typing import Any

from truestep.events import Event, ResultCompared, Site
from truestep.probes.context.local_variables import readable
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused
from truestep.probes.evaluation.chosen import ChosenRows, arguments
from truestep.probes.evaluation.figures import Figures
from truestep.probes.evaluation.rows import Rows, is_outer
from truestep.probes.evaluation.scales import Scales, is_written
from truestep.probes.evaluation.statements import Statements
from truestep.probes.evaluation.values import Made, Value
from truestep.probes.figures.function_ends import FunctionEnd, FunctionEnds
from truestep.probes.figures.named import NamedFigures
from truestep.probes.figures.plain import plainly_right
from truestep.probes.forward.results import loop_at

_CALLS = 3
"""Calls of a line that are followed in its first evaluation."""
_CALLS_LATER = 2
"""The same in each later evaluation."""
_EVALUATIONS = 8
"""Evaluations that are followed, of one line."""
_WHOLE_S = 0.25
"""Processor time in which further calls of an evaluation are followed, so that all of it is known."""
_MOST_CLASSES = 1000
_MOST_CELLS = 256
"""Pairs of a class and its prediction that are counted."""
_MOST_LINES = 32
_LARGEST = 1 << 22
_LEAST = 8
_LEAST_LENGTH = 3
"""Positions of rows that can have padding."""
_LEAST_ROWS = 100
_BELOW = 0.4
"""Share of targets among the smallest scores, in parts of the share by chance."""
_BROKEN = 0.9
"""Least share of numbers that are not whole among scores."""
_MIDDLE = (0.3, 0.7)
"""Thresholds of probabilities."""


class Comparisons:
    """Emits `ResultCompared`.

    Args:
        scene: the scene.
        aside: returns the context manager in which statements are repeated.
        labels: returns the event about the labels that results are compared with, if any.
        chosen: returns the event about rows of a result that are compared, if any.
    """

    def __init__(
        self,
        scene: Scene,
        aside: Callable[[], AbstractContextManager[None]],
        labels: Callable[[Site, Any], Event | None],
        chosen: ChosenRows,
    ) -> None:
        self._scene = scene
        self._aside = aside
        self._labels = labels
        self._chosen = chosen
        self._left: dict[tuple[int, Site | None], _Left] = {}
        self._figures = Figures(scene)
        self._named = NamedFigures(scene, aside)
        self._ends = FunctionEnds(scene, aside)
        self._spent_s = 0.0
        self._loops = 0
        """Loops with lists of results."""
        self._found: list[Event] = []
        self._model = 0
        self._called: Site | None = None
        self._samples = 0
        self._inputs: list[Rows] = []
        self._paired: set[tuple[int, int, int]] = set()
        """Model and memory of its table of inputs and of that of targets, if these were once compared row by row."""
        self._frame: FrameType | None = None
        self._scores: Any = None
        """The result of the call that is followed."""
        self._scored: set[int | str] = set()
        """Selections of rows of the current result that were handled."""
        self._scales = Scales(scene)

    def returned(
        self,
        model: int,
        site: Site | None,
        frame: FrameType,
        result: Any,
        *,
        tracked: bool = False,
        averages: bool = False,
    ) -> None:
        """Handle a call of a model that has returned, of an evaluation or with a result that is compared.

        Args:
            model: number of the model.
            site: line of the call.
            frame: torch's frame of the call.
            result: its result.
            tracked: True if the result tracks gradients.
            averages: True to judge nothing but the averages of losses: of a training that compares no result.
        """
        scene, key = self._scene, (model, site)
        step = scene.coast.number if scene.coast.on else scene.sampling.step
        if not tracked:
            scores = next((part for part in _parts(result) if self._is_result(part)), None)
            self._named.called(model, step, site, scene.sites.above(frame), scores)
        left = self._left.get(key)
        if left is None and len(self._left) >= _MOST_LINES:
            return
        left = self._left.setdefault(key, _Left(step)) if left is None else left
        left.turn(step)
        figures = None if tracked else self._figures
        if figures is not None:
            figures.called(model, step, frame)
        more = left.calls or (figures is not None and self._spent_s < _WHOLE_S)
        user = scene.sites.above(frame) if more else None
        first = next((part for part in _parts(result) if self._is_result(part)), None) if more else None
        if site is None or user is None or scene.sites.at(user) is not site or first is None:
            if figures is not None:
                figures.missed()
            return
        left.calls -= left.calls > 0
        began = thread_time()
        self._found, self._model, self._called = [], model, site
        self._samples, self._frame, self._scored = int(first.shape[0]), frame, set()
        self._scores = first.detach()
        try:
            with self._aside(), scene.torch.no_grad():
                given = first.detach() if first is result else _detached(result, scene.torch.Tensor)
                if not averages:
                    self._chosen.evaluated(arguments(frame, scene.torch, self._samples))
                statements = Statements(scene, self._judge, self._samples, self._score, self._mistaken)
                self._inputs = statements.rows_of_inputs(user)
                statements.follow(user, given)
            if statements.end is not None and not tracked:
                self._ended(self._ends.after(user, statements.end))
        except Refused:
            self._found.clear()
        if averages:
            kept = ("means", "rows")
            self._found = [one for one in self._found if isinstance(one, ResultCompared) and one.how in kept]
        self._frame = self._scores = None
        self._spent_s += thread_time() - began
        if figures is not None:
            figures.counted(self._found)
        for event in self._found:
            scene.emit(event)

    def learned(self, target: Any, ignored: int | None) -> None:
        """Handle the targets of a loss of the training, at a sampled step."""
        self._scales.learned(target, ignored)

    def lost(self, value: Any, target: Any, ignored: int, reduction: str) -> None:
        """Handle a loss on classes in an evaluation."""
        self._named.lost(value, target, ignored, reduction)

    def trained(self, frame: FrameType) -> None:
        """Handle a call of training, which can follow an evaluation."""
        for event in (*self._figures.settle(frame), *self._named.settle(frame)):
            self._scene.emit(event)

    def passed(self, frame: FrameType) -> None:
        """Handle the end of a pass over a loader, at a frame of torch."""
        if not (self._figures.running or self._named.running):
            return
        user = self._scene.sites.above(frame)
        if user is not None:
            found = self._collected(user)
            known = {(one.site, one.how) for one in self._named.passed(user) if isinstance(one, ResultCompared)}
            for event in found:
                if (event.site, event.how) not in known:
                    self._scene.emit(event)
        end = None if user is None else self._ends.after_loop(user)
        if end is not None:
            self._ended(end)

    def _collected(self, user: FrameType) -> list[ResultCompared]:
        """Return the comparisons behind a loop that collects the results of its calls in lists."""
        collected, found = self._named.collected, loop_at(user.f_code.co_filename, user.f_lineno)
        if found is None or self._loops >= _MOST_LINES or not readable(user):
            return []
        self._found, (self._model, self._called, self._samples) = [], collected.call
        self._inputs = []
        try:
            with self._aside(), self._scene.torch.no_grad():
                lists = {name: Value(parts, Made(raw=raw)) for name, parts, raw in collected.lists(user)}
                if lists:
                    self._loops += 1
                    self._scores = collected.result
                    statements = Statements(self._scene, self._judge, self._samples, self._score, self._mistaken)
                    statements.behind(*found, user, lists)
        except Refused:
            return []
        finally:
            self._scores = None
        known = (one for one in self._found if isinstance(one, ResultCompared))
        return [one if one.how else replace(one, how="collected") for one in known if one.how or one.plain is not None]

    def _ended(self, end: FunctionEnd) -> None:
        self._figures.ended(end)
        self._named.ended(end)

    def last(self) -> Iterator[Event]:
        """Yield the figures of the latest evaluation, at the end of the run."""
        yield from self._figures.settle(None)
        yield from self._named.last()

    def _is_result(self, part: Any) -> bool:
        tensor = self._scene.torch.Tensor
        return type(part) is tensor and part.dim() > 0 and part.is_floating_point() and 0 < part.numel() <= _LARGEST

    def _judge(self, name: str, one: Value, two: Value, node: ast.expr, path: str) -> None:
        """Judge a comparison of a result with values that were not made from it."""
        if one.made is None and two.made is not None:
            one, two = two, one
            name = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}.get(name, name)
        if one.made is None or two.made is not None:
            return
        predicted, target = one.it, two.it
        tensor = self._scene.torch.Tensor
        site = Site(path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        if name in ("gt", "ge") and one.made.raw and type(target) is float and _MIDDLE[0] <= target <= _MIDDLE[1]:
            if is_written(target, node, path):
                outside = ((predicted < 0) | (predicted > 1)).float().mean().item()
                self._tell("threshold", site, predicted, None, round(100 * outside))
            return
        if (
            name not in ("eq", "ne", "sub", "loss")
            or not isinstance(predicted, tensor)
            or not isinstance(target, tensor)
        ):
            return
        others = self._are_others(two.rows, loss=name == "loss")
        if name == "loss":
            if others:
                self._tell("rows", site, predicted, target)
            return
        labels = None if name == "sub" or one.made.raw or self._frame is None else self._labels(site, target)
        self._found += [] if labels is None else [labels]
        how = "" if is_outer(node) else self._broadcast(predicted, target)
        if name != "sub" and not how:
            how = one.made.over if one.made.over != "all" or target.numel() > 1 else ""
            if how == "least" and not self._is_below_chance(predicted, target, one.made.classes):
                how = ""
            if not how and (one.made.best or one.made.raw) and self._are_scores(predicted, target):
                how = "scores"
        how = how or ("rows" if others else "")
        self._tell(
            how, site, predicted, target, counted={} if how or name == "sub" else self._counted(predicted, target)
        )

    def _are_others(self, targets: Rows | None, *, loss: bool) -> bool:
        """Return True if the rows of targets are others than those of the inputs.

        A later part of a series can be predicted from an earlier one. Targets of a loss, and parts of rows, are
        therefore to belong to a table that was once compared row by row.
        """
        if targets is None:
            return False
        model = self._model
        self._paired |= {(model, rows.memory, targets.memory) for rows in self._inputs if targets.are_those_of(rows)}
        return any(
            targets.are_others_than(rows)
            and (not (loss or targets.parts or rows.parts) or (model, rows.memory, targets.memory) in self._paired)
            for rows in self._inputs
        )

    def _score(self, made: Made, target: Any, node: ast.expr, path: str) -> None:
        """Handle selected rows of the result that are compared with targets."""
        index, text = made.by or (None, "")
        key = text if type(index) is slice else id(index)
        if self._frame is None or key in self._scored:
            return
        site = Site(path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        event = self._chosen.scored(self._model, made.numbers, self._samples, target, (index, text), self._frame, site)
        if event is not None:
            self._scored.add(key)
            self._found.append(event)

    def _mistaken(self, how: str, made: Made | None, node: ast.AST, path: str, text: str) -> None:
        """Handle a mistake of a figure, the sizes of differences, or an average of comparisons."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", None) or 0, getattr(node, "end_col_offset", None) or 0
        facts: dict[str, Any] = {}
        if how == "shares" and made is not None:
            facts["predicted"] = (self._samples, made.shares)
        if how in ("size", "averaged"):
            if made is None or made.pair is None:
                return
            how, facts = self._scales.judged(how, made)
        if how:
            self._found.append(
                self._scene.event(
                    ResultCompared,
                    model=self._model,
                    how=how,
                    name=text,
                    samples=self._samples,
                    site=Site(path, line, column, end_line, end_column),
                    call=self._called,
                    **facts,
                )
            )

    def _counted(self, predicted: Any, target: Any) -> dict[str, Any]:
        """Return the number of equal classes, the number to expect by chance, and the classes of the targets."""
        torch, count = self._scene.torch, predicted.numel()
        if predicted.shape != target.shape or count < _LEAST:
            return {}
        one, two = predicted.reshape(-1).double(), target.reshape(-1).double()
        if not bool(((one == one.round()) & (two == two.round())).all()):
            return {}
        classes, at = torch.unique(torch.cat([one, two]), return_inverse=True)
        if len(classes) > _MOST_CLASSES:
            return {}
        chosen, given = (torch.bincount(part, minlength=len(classes)) for part in at.split(count))
        padding, (first, second) = _padding(target), at.split(count)
        pairs, often = torch.unique(second * len(classes) + first, return_counts=True)
        cells = [
            (*(int(classes[place]) for place in divmod(pair, len(classes))), of)
            for pair, of in zip(pairs.tolist(), often.tolist(), strict=True)
        ]
        return {
            "plain": None if self._scores is None else plainly_right(self._scores, predicted, target),
            "confused": tuple(cell for cell in cells if cell[0] not in padding) if len(cells) <= _MOST_CELLS else (),
            "equal": int((one == two).sum()),
            "expected": float((chosen.double() * given).sum()) / count,
            "labels": tuple(
                (int(number), int(of))
                for number, of in zip(classes, given, strict=True)
                if of and float(number) not in padding
            ),
        }

    def _broadcast(self, predicted: Any, target: Any) -> str:
        count = predicted.numel()
        if count != target.numel() or count < 2 or predicted.shape == target.shape:
            return ""
        wide = self._scene.torch.broadcast_shapes(predicted.shape, target.shape).numel()
        return "broadcast" if wide == count * count else ""

    def _is_below_chance(self, predicted: Any, target: Any, classes: int) -> bool:
        """Return True if targets are among the smallest scores more seldom than by chance: distances differ."""
        rows = int(predicted.shape[0])
        if target.shape[0] != rows or target.numel() != rows or rows < _LEAST_ROWS or not classes:
            return False
        chosen = predicted.reshape(rows, -1)
        hits = float((chosen == target.reshape(rows, 1)).any(1).double().mean())
        return hits < _BELOW * int(chosen.shape[1]) / classes

    def _are_scores(self, predicted: Any, target: Any) -> bool:
        """Return True if numbers that are not whole are compared for equality with whole ones."""
        if not predicted.is_floating_point() or predicted.numel() < _LEAST or target.numel() < _LEAST:
            return False
        broken = (predicted != predicted.round()).float().mean().item()
        whole = bool((target == target.round()).all()) if target.is_floating_point() else True
        return broken >= _BROKEN and whole and len(target.unique()) > 1

    def _tell(
        self, how: str, site: Site, predicted: Any, target: Any, outside: int = 0, counted: dict[str, Any] | None = None
    ) -> None:
        self._found.append(
            self._scene.event(
                ResultCompared,
                model=self._model,
                how=how,
                predicted=tuple(predicted.shape),
                target=() if target is None else tuple(target.shape),
                outside=outside,
                samples=self._samples,
                site=site,
                call=self._called,
                **(counted or {}),
            )
        )


@dataclass(slots=True)
class _Left:
    """Calls of a line that are still followed."""

    step: int
    calls: int = _CALLS
    evaluations: int = 1

    def turn(self, step: int) -> None:
        """Allow calls of another evaluation, after a step."""
        if step != self.step and self.calls < _CALLS_LATER and self.evaluations < _EVALUATIONS:
            self.step, self.calls, self.evaluations = step, _CALLS_LATER, self.evaluations + 1


def _parts(result: Any) -> list[Any]:
    return list(result[:4]) if isinstance(result, tuple | list) else [result]


def _detached(result: Any, tensor: type) -> Any:
    """Return a result of several parts, as a plain tuple without graphs."""
    parts = [part.detach() if isinstance(part, tensor) else part for part in result]  # type: ignore[attr-defined]
    return tuple(parts)


def _padding(target: Any) -> set[float]:
    """Return the labels that fill the ends, or the beginnings, of rows of different lengths: a mask leaves them out."""
    if target.dim() != 2 or target.shape[1] < _LEAST_LENGTH:
        return set()
    found = set()
    for column, flipped in ((0, target), (-1, target.flip(1))):
        label = target[:, column].mode().values
        there = flipped == label
        counts = there.sum(1)
        if bool((counts != counts[0]).any()) and bool((there.long().cumprod(1).sum(1) == counts).all()):
            found.add(float(label))
    return found
