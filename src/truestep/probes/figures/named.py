"""Figures that variables and printed expressions hold after an evaluation, next to its counts and losses.

They are read at the first call of training after the evaluation, at the next evaluation, and at the end of the run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from time import thread_time
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from truestep.events import ClassFigureRead, EvaluationRan, Event, FigureOfTest, LossFigureRead, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused
from truestep.probes.figures.choices import Choices
from truestep.probes.figures.chosen_numbers import ChosenNumbers
from truestep.probes.figures.claims import Claimed, claimed, computed, is_of_classes, returned
from truestep.probes.figures.collected import Collected
from truestep.probes.figures.counts import Counts
from truestep.probes.figures.likelihood import Likelihood
from truestep.probes.figures.of_tests import OfTest, figure_of_test
from truestep.probes.unread.statements import scope_of

if TYPE_CHECKING:
    from truestep.probes.figures.function_ends import FunctionEnd

_MOST = 64
"""Figures that are read in a run."""
_MOST_EVALUATIONS = 256
_MOST_S = 0.25
"""Processor time for the counts of a run."""
_MOST_TESTS = 16
_FRAMES = 4
_Key = tuple[int, str]


class NamedFigures:
    """Emits `ClassFigureRead`, `LossFigureRead`, `FigureOfTest`, `EvaluationRan`, `ChoiceRead` and `NumberChosen`.

    Args:
        scene: the scene.
        aside: returns the context manager in which tensors are read.
    """

    def __init__(self, scene: Scene, aside: Callable[[], AbstractContextManager[None]]) -> None:
        self._scene = scene
        self._aside = aside
        self._step = -1
        self._begun = self._read = 0
        self._spent_s = 0.0
        self._site: Site | None = None
        self._counts: Counts | None = None
        self._likelihood = Likelihood(scene.torch)
        self._lost = -1
        """Step of the losses; the first one can come before its call has returned."""
        self._before: dict[_Key, Claimed] = {}
        self._ended: dict[_Key, Claimed] = {}
        """Figures of functions of the evaluation that end."""
        self._choices = Choices(scene)
        self._numbers = ChosenNumbers(scene)
        self._collected = Collected(scene.torch)
        self._tests: set[OfTest] = set()
        self._main = ""
        """File of the main module, which does not know it at its end."""

    @property
    def running(self) -> bool:
        """True between a call of an evaluation and the training after it."""
        return self._counts is not None

    @property
    def collected(self) -> Collected:
        """The results of the evaluation that goes on."""
        return self._collected

    def called(self, model: int, step: int, site: Site | None, user: FrameType | None, result: Any) -> None:
        """Handle a call of a model in an evaluation.

        Args:
            model: number of the model.
            step: number of the step.
            site: line of the call.
            user: the user's frame; None if it is unknown.
            result: the first tensor of the result, without a graph; None if there is none.
        """
        scene = self._scene
        if user is not None:
            self._tested(site, user)
            for code in self._numbers.called(user):
                if (scope := scope_of(code)) is not None:
                    scene.emit(EvaluationRan(path=code.co_filename, first=getattr(scope, "lineno", 0), site=site))
        if self._counts is None or step != self._step:
            for event in self.settle(user):
                scene.emit(event)
            if self._read >= _MOST or self._begun >= _MOST_EVALUATIONS or user is None:
                return
            self._begun += 1
            self._step, self._counts = step, Counts(scene.torch)
            self._collected.begin()
            self._site, self._before = site, dict(_figures(scene, user, self._main))
            mains = (one for one in scene.sites.users(user) if one.f_globals.get("__name__") == "__main__")
            self._main = next((one.f_code.co_filename for one in mains), self._main)
        if self._counts is None or not self._counts.whole:
            return
        if result is None or user is None or self._spent_s > _MOST_S:
            self._counts.whole = False
            return
        began = thread_time()
        try:
            with self._aside(), scene.torch.no_grad():
                self._counts.called(model, scene.loader, user, result.detach())
                beside = self._counts.targets(user, int(result.shape[0]))
                self._collected.called(model, site, user, result.detach(), beside)
        except Refused:
            self._counts.whole = False
        self._spent_s += thread_time() - began

    def passed(self, user: FrameType) -> list[Event]:
        """Handle the end of a pass over a loader, in a frame of the user; return comparisons of collected values."""
        if self._counts is None or self._spent_s > _MOST_S:
            return []
        began = thread_time()
        try:
            with self._aside(), self._scene.torch.no_grad():
                found = list(self._collected.passed(user, self._scene.event))
        except Refused:
            found = []
        self._spent_s += thread_time() - began
        for event in found:
            self._scene.emit(event)
        return found

    def _tested(self, site: Site | None, user: FrameType) -> None:
        """Emit that the values of an evaluation are called those of a test."""
        for frame in self._scene.sites.users(user)[:_FRAMES]:
            test = figure_of_test(frame.f_code.co_filename, frame.f_lineno)
            if test is not None and test not in self._tests and len(self._tests) < _MOST_TESTS:
                self._tests.add(test)
                self._scene.emit(FigureOfTest(name=test.name, place=test.place, site=site))

    def lost(self, value: Any, target: Any, ignored: int, reduction: str) -> None:
        """Handle a loss on classes without gradients."""
        step = self._scene.coast.number if self._scene.coast.on else self._scene.sampling.step
        if step != self._lost:
            self._likelihood, self._lost = Likelihood(self._scene.torch), step
        if self._read < _MOST and self._begun < _MOST_EVALUATIONS:
            self._likelihood.computed(value, target, ignored, reduction, self._scene.loader)

    def ended(self, end: FunctionEnd) -> None:
        """Handle the end of a function, behind its loop."""
        if self._counts is None:
            return
        path = end.code.co_filename
        for found in (claimed(self._scene.torch, end.names, end.code, path), returned(self._scene.torch, end.returned)):
            self._ended.update(((id(end.code), f"{path}\n{key}"), figure) for key, figure in found)

    def settle(self, frame: FrameType | None) -> Iterator[Event]:
        """Yield the figures of the latest evaluation, after it."""
        counts, self._counts = self._counts, None
        ended, self._ended = self._ended, {}
        if counts is None:
            return
        self._choices.evaluated(frame)
        try:
            with self._aside():
                yield from list(self._settled(counts, frame, ended))
        except Refused:
            return

    def last(self) -> Iterator[Event]:
        """Yield the figures of the latest evaluation and the choices, at the end of the run."""
        yield from self.settle(None)
        yield from self._choices.last()
        yield from self._numbers.last()

    def _settled(self, counts: Counts, frame: FrameType | None, ended: dict[_Key, Claimed]) -> Iterator[Event]:
        held = dict(_figures(self._scene, frame, self._main))
        known = {(one.claim, one.numbers) for one in held.values()}
        more: dict[_Key, Claimed] = {}
        for key, figure in ended.items():
            if (figure.claim, figure.numbers) not in known:
                known.add((figure.claim, figure.numbers))
                more[key] = figure
        for key, figure in (more | held).items():
            before = self._before.get(key)
            if (before is not None and before.numbers == figure.numbers) or self._read >= _MOST:
                continue
            function = "" if self._site is None else self._site.function
            path = key[1].partition("\n")[0]
            fields: dict[str, Any] = {
                "claim": figure.claim, "name": figure.name, "values": figure.numbers, "site": self._site,
                "place": figure.place or computed(path, figure.claim, figure.name, function),
            }  # fmt: skip
            if is_of_classes(figure.claim):
                groups = counts.groups()
                if groups:
                    self._read += 1
                    yield ClassFigureRead(
                        counts=tuple((one.samples, one.classes) for one in groups),
                        batches=tuple(one.batches for one in groups),
                        **fields,
                    )
            elif self._lost == self._step and (means := self._likelihood.means()):
                self._read += 1
                yield LossFigureRead(losses=means, **fields)


def _figures(scene: Scene, frame: FrameType | None, path: str) -> Iterator[tuple[_Key, Claimed]]:
    """Yield the figures that the user's frames hold, or without one the main module of a file, with their places."""
    spaces: list[tuple[int, CodeType | None, Mapping[str, object], str]] = []
    for one in scene.sites.users(frame):
        local = bool(one.f_code.co_flags & 1)
        names: Mapping[str, object] = variables(one) if local else one.f_globals
        spaces.append((id(one.f_code) * local, one.f_code, names, one.f_code.co_filename))
    if frame is None:
        spaces = [(0, None, vars(sys.modules["__main__"]), path)]
    for owner, code, names, file in spaces:
        for key, figure in claimed(scene.torch, names, code, file):
            yield (owner, f"{file}\n{key}"), figure
