"""Figures of an evaluation, as variables of the program hold them, beside the comparisons that were followed.

They are read at the first call of training after the evaluation, and at the end of the run.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep import source
from truestep.events import EvaluationLossRead, Event, FigureRead, ResultCompared, Site
from truestep.probes.context.guards import guarded_losses
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import plain_number
from truestep.probes.evaluation.quotients import Quotient, quotients, quotients_of
from truestep.probes.evaluation.quotients import value as quotient_value

if TYPE_CHECKING:
    from truestep.probes.figures.function_ends import FunctionEnd

_SHARES = frozenset({
    "acc", "accuracy", "accs", "accuracies", "iou", "miou", "dice", "f1", "auc", "auroc", "precision", "recall",
})  # fmt: skip
_OTHERS = frozenset({"loss", "losses", "total", "sum", "count", "num", "correct", "grad", "grads", "fn", "metric"})
"""Words of names that hold something else, such as ``dice_loss``."""
_HELD_OUT = frozenset({"val", "valid", "validation", "test", "eval", "dev", "held", "heldout"})
_LOSSES = frozenset({"loss", "losses", "mse", "mae", "rmse", "nll", "error"})
"""With one of the words before: names of the loss of an evaluation."""
_NO_LOSSES = frozenset({"best", "min", "lowest", "total", "sum", "count", "num", "fn", "last", "prev", "previous"})
_MOST_LOSSES = 256
"""Losses of evaluations that are read in a run."""
_WORD = re.compile(r"[^\W_]+")
_MOST = 64
"""Figures that are read in a run."""
_MOST_EVALUATIONS = 1024
_IN_A_ROW = 64
"""Evaluations in which variables are read even if each follows a single step, as the calls of a teacher do."""

_Key = tuple[int, str]
"""Identity of the function with a variable, 0 for a module, and its name, or the text of a quotient."""


class _Figure(NamedTuple):
    """A variable with the name of a figure, or a quotient."""

    held: object
    number: float
    name: str
    label: str = ""
    place: Site | None = None
    """Place of a quotient."""
    loss: bool = False
    """Whether it is the loss of an evaluation."""


@dataclass(slots=True)
class _Evaluation:
    """Comparisons of one line between two steps."""

    model: int
    step: int
    before: dict[_Key, _Figure]
    """Figures at its first call."""
    batches: int = 0
    equal: int = 0
    samples: int = 0
    shares: float = 0.0
    """Sum of the shares of equal classes, over the batches."""
    last: tuple[int, int] = (0, 0)
    site: Site | None = None
    whole: bool = True
    """False if a call was not followed to one comparison."""
    sites: set[Site] = field(default_factory=set)
    labels: Counter[int] = field(default_factory=Counter)

    @property
    def of(self) -> tuple[int, Counter[int]]:
        """Model and labels: those of another fold, or of another split, are others."""
        return self.model, self.labels


class Figures:
    """Emits `FigureRead` and `EvaluationLossRead`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._now: _Evaluation | None = None
        self._every: list[_Evaluation] = []
        """Evaluations of one model on the same samples."""
        self._ended: dict[_Key, _Figure] = {}
        """Figures of functions of the evaluation that end."""
        self._read = self._losses = 0
        self._begun = 0
        self._latest = -1
        """Step of the latest call of an evaluation."""
        self._main = ""
        """File of the main module, which does not know it at its end."""

    @property
    def running(self) -> bool:
        """True between a call of an evaluation and the training after it."""
        return self._now is not None

    def called(self, model: int, step: int, frame: FrameType) -> None:
        """Handle a call of a model in an evaluation."""
        if self._now is not None and self._now.step == step:
            self._now.whole &= self._now.model == model
            return
        for event in self.settle(frame):
            self._scene.emit(event)
        beside, self._latest = step - self._latest <= 1, step
        most = _IN_A_ROW if beside else _MOST_EVALUATIONS
        if min(self._read, self._losses) < _MOST and self._begun < most:
            self._begun += 1
            self._now = _Evaluation(model, step, _figures(self._scene, frame))
            mains = (one for one in self._scene.sites.users(frame) if one.f_globals.get("__name__") == "__main__")
            self._main = next((one.f_code.co_filename for one in mains), self._main)

    def counted(self, events: list[Event]) -> None:
        """Enter the comparisons that were found after a call."""
        now, counts = self._now, [one for one in events if isinstance(one, ResultCompared) and one.equal is not None]
        if now is None:
            return
        if len(counts) != 1 or counts[0].site is None:
            now.whole = False
            return
        equal, samples, now.site = counts[0].equal or 0, sum(count for _, count in counts[0].labels), counts[0].site
        now.sites.add(now.site)
        now.batches += 1
        now.equal += equal
        now.samples += samples
        now.labels.update(dict(counts[0].labels))
        now.shares += equal / samples
        now.last = equal, samples

    def missed(self) -> None:
        """Handle a call that was not followed."""
        if self._now is not None:
            self._now.whole = False

    def ended(self, end: FunctionEnd) -> None:
        """Handle the end of a function, behind its loop."""
        if self._now is None:
            return
        torch, owner = self._scene.torch, id(end.code)
        found = _of_names(torch, end.names, end.code.co_filename, quotients(end.code))
        for one in end.returned:
            if _is_figure(one.label) and (number := plain_number(torch, one.value)) is not None:
                found[f"return {one.text}"] = _Figure(number, number, one.text, one.label, one.place)
        self._ended.update({(owner, name): figure for name, figure in found.items()})

    def settle(self, frame: FrameType | None) -> Iterator[FigureRead | EvaluationLossRead]:
        """Yield the figures and the losses of the latest evaluation, after it."""
        now, self._now = self._now, None
        ended, self._ended = self._ended, {}
        if now is None:
            return
        scene = self._scene
        whole = now.whole and len(now.sites) == 1 and now.samples > 0
        if whole:
            earlier = [one for one in self._every[-_MOST:] if one.of == now.of]
            self._every = [*earlier, replace(now, before={})]
        paths = dict.fromkeys(one.f_code.co_filename for one in scene.sites.users(frame))
        paths[self._main] = None
        held = _figures(scene, frame, self._main)
        known = {one.number for one in held.values()}
        more = {key: one for key, one in ended.items() if one.number not in known}
        for key, figure in (more | held).items():
            before = now.before.get(key)
            same = before is not None and (figure.held is before.held or figure.held == before.held == figure.number)
            if same:
                continue
            if figure.loss:
                if self._losses < _MOST_LOSSES:
                    self._losses += 1
                    yield EvaluationLossRead(name=figure.name, value=float(f"{figure.number:.6g}"))
                continue
            if self._read >= _MOST:
                continue
            self._read += 1
            place = figure.place or next(filter(None, (_stored(path, key[1]) for path in paths)), None)
            yield FigureRead(
                name=figure.name,
                label=figure.label,
                value=figure.number,
                percent=place is not None and _has_hundred(place.path),
                batches=now.batches if whole else 0,
                equal=now.equal,
                samples=now.samples if whole else 0,
                shares=now.shares,
                last=now.last,
                every=(sum(one.equal for one in self._every), sum(one.samples for one in self._every)),
                evaluations=len(self._every),
                place=place,
                site=now.site,
            )


def _figures(scene: Scene, frame: FrameType | None, path: str = "") -> dict[_Key, _Figure]:
    """Return the variables with names of figures, and the quotients, of the user's frames or of the main module."""
    spaces: list[tuple[int, str, Mapping[str, object], tuple[Quotient, ...]]] = []
    for one in scene.sites.users(frame):
        local, path = bool(one.f_code.co_flags & inspect.CO_OPTIMIZED), one.f_code.co_filename
        spaces.append((id(one.f_code) * local, path, variables(one) if local else one.f_globals, quotients(one.f_code)))
    if frame is None:
        spaces = [(0, path, vars(sys.modules["__main__"]), quotients_of(path) if path else ())]
    found: dict[_Key, _Figure] = {}
    for owner, path, names, divisions in spaces:
        of_names = _of_names(scene.torch, names, path, divisions)
        found.update({(owner, name): figure for name, figure in of_names.items()})
    return found


def _of_names(
    torch: Any, names: Mapping[str, object], path: str, divisions: tuple[Quotient, ...]
) -> dict[str, _Figure]:
    """Return the variables with names of figures, and the quotients, of a function or a module."""
    found: dict[str, _Figure] = {}
    losses = guarded_losses(path)
    for name, value in list(names.items()):
        loss = name in losses or _is_loss(name)
        if (loss or _is_figure(name)) and (number := plain_number(torch, value)) is not None:
            found[name] = _Figure(value, number, name, loss=loss)
    for division in divisions:
        if (number := quotient_value(torch, division.node, names)) is not None:
            figure = _Figure(number, number, division.text, division.label, division.place)
            found[f"{division.label}:{division.text}"] = figure
    return found


@functools.lru_cache(maxsize=4096)
def _is_figure(name: str) -> bool:
    words = set(_WORD.findall(name.lower()))
    return not words.isdisjoint(_SHARES) and words.isdisjoint(_OTHERS)


@functools.lru_cache(maxsize=4096)
def _is_loss(name: str) -> bool:
    words = set(_WORD.findall(name.lower()))
    held_out = not words.isdisjoint(_HELD_OUT) and not words.isdisjoint(_LOSSES)
    return held_out and words.isdisjoint(_NO_LOSSES)


@functools.lru_cache(maxsize=256)
def _stored(path: str, name: str) -> Site | None:
    """Return the first statement of a file that stores a variable."""
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return Site(path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
    return None


@functools.lru_cache(maxsize=16)
def _has_hundred(path: str) -> bool:
    """Return True if a program multiplies or divides by 100 anywhere, so that its figures can be percent."""
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        if isinstance(node, ast.BinOp | ast.AugAssign):
            parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
            if any(isinstance(part, ast.Constant) and part.value in (100, 0.01) for part in parts):
                return True
    return False
