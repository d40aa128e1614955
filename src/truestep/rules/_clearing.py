"""Frequency of clearing gradients, for missing-zero-grad and zero-grad-once-per-epoch, which exclude each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from truestep.events import (
    BackwardEnded,
    Event,
    GradientsZeroed,
    HandStepped,
    LoaderStarted,
    MixtureMeasured,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Draft, Progress, Rule


@dataclass(slots=True)
class MixedLine:
    """Steps at one line that used gradients mixed with those of earlier steps."""

    site: Site | None
    optimizer: int
    first_step: int
    added: Mark
    count: int = 0


class Clearing:
    """Tracks the gradients of every optimizer from step to step, and the epoch starts between the steps."""

    def __init__(self) -> None:
        self.mixings: dict[Site | None, MixedLine] = {}
        self._measured: dict[int, str] = {}
        self._added = Mark(None, "")
        self._loader: int | None = None
        self._started: set[int] = set()
        self._zeroed: set[int] = set()
        self._backwards = 0
        self._stepped: set[int] = set()
        self._mixed: set[int] = set()
        self._looped: set[int] = set()
        """Optimizers with steps that follow batches of a loader."""
        self._announced: set[int] = set()
        """Optimizers with gradients that were cleared by a call before the first batch of the run."""
        self._renewed: set[int] = set()
        """Optimizers with clean gradients, after mixed ones, at the start of an epoch."""
        self._missed: set[int] = set()
        """Optimizers that stepped on mixed gradients at the start of an epoch."""
        self._cleared: set[int] = set()
        """Optimizers with clean gradients, after mixed ones, at any moment."""

    def once_per_epoch(self, optimizer: int) -> bool:
        """Return True if the optimizer's gradients are cleared at the start of an epoch and not for each step."""
        if optimizer in self._missed:
            return False
        if optimizer in self._looped:
            return optimizer in self._renewed or optimizer in self._announced
        return optimizer in self._cleared

    def cost(self, optimizer: int) -> str:
        """Return the measured effect of mixed gradients; empty if it was not measured."""
        return self._measured.get(optimizer, "")

    def observe(self, event: Event, run: Progress) -> None:
        """Update the state with an event of the run."""
        match event:
            case LoaderStarted():
                self._started.add(event.loader)
            case GradientsZeroed():
                if not self._backwards:
                    self._zeroed |= self._owners(event, run)
            case BackwardEnded(in_step=False):
                self._backwards += 1
                self._loader = event.loader
                if event.onto_used:
                    label = "added to gradients that an earlier step had already used"
                    if len(run.optimizers) == 1:
                        label = f"added to gradients already used at step {max(0, run.step - 1)}"
                    self._added = Mark(event.site, label)
            case MixtureMeasured():
                self._measured[event.optimizer] = (
                    f"the gradient stepped on is {_times(event.ratio)} the one the last backward made "
                    f"(norms measured at step {run.step})"
                )
            case OptimizerStepped():
                self._step(event, run)
            case HandStepped():
                self._close()

    def _owners(self, event: GradientsZeroed, run: Progress) -> set[int]:
        if event.optimizer is not None:
            return {event.optimizer}
        model = run.models.get(event.model or 0)
        if model is None:
            return set(run.optimizers)
        return {owner for parameter in model.parameters for owner in run.held_by.get(parameter, ())}

    def _step(self, event: OptimizerStepped, run: Progress) -> None:
        number = event.optimizer
        begins = self._loader is not None and self._loader in self._started
        if self._loader is not None:
            self._looped.add(number)
        if event.mixed:
            mixing = self.mixings.get(event.site)
            if mixing is None:
                mixing = self.mixings[event.site] = MixedLine(event.site, number, run.step, self._added)
            mixing.count += 1
            if begins and number in self._stepped:
                self._missed.add(number)
            self._mixed.add(number)
        elif event.fresh and number in self._mixed:
            self._cleared.add(number)
            if begins:
                self._renewed.add(number)
        if number not in self._stepped and number in self._zeroed:
            self._announced.add(number)
        if event.fresh or event.mixed:
            self._stepped.add(number)
        self._zeroed.discard(number)
        self._close()

    def _close(self) -> None:
        self._backwards, self._loader = 0, None
        self._started.clear()

    def again(self, event: Event, times: int) -> None:
        """Count repeated steps."""
        if isinstance(event, OptimizerStepped) and event.mixed and event.site in self.mixings:
            self.mixings[event.site].count += times


class MixedSteps(Rule):
    """Base class of rules about steps on gradients that still include those of earlier steps."""

    severity = Severity.ERROR
    watches = (BackwardEnded, OptimizerStepped, HandStepped, MixtureMeasured, LoaderStarted, GradientsZeroed)
    needs = (BackwardEnded, steps(2))
    leads_to = ("nan-or-inf", "update-exceeds-weights")
    of_epochs: ClassVar[bool]
    """True: the rule covers gradients that are cleared at the start of an epoch; False: all others."""

    def __init__(self) -> None:
        super().__init__()
        self._clearing = Clearing()

    def observe(self, event: Event, run: Progress) -> None:
        self._clearing.observe(event, run)
        if isinstance(event, OptimizerStepped):
            for mixing in self._to_tell(event):
                self._complete(self._tell(mixing, run), mixing)

    def _to_tell(self, event: OptimizerStepped) -> Iterator[MixedLine]:
        """Yield the mixings that a step shows, new or repeated; withdraw those that belong to the other rule."""
        for site, mixing in self._clearing.mixings.items():
            if self._clearing.once_per_epoch(mixing.optimizer) is not self.of_epochs:
                self.withdraw(site)
            elif site not in self._drafts or (event.mixed and event.site == site):
                yield mixing

    @abstractmethod
    def _tell(self, mixing: MixedLine, run: Progress) -> Draft:
        """Report the steps at one line."""

    def _complete(self, draft: Draft, mixing: MixedLine) -> None:
        draft.count, draft.first_step = mixing.count, mixing.first_step
        draft.cost = self._clearing.cost(mixing.optimizer)

    def again(self, event: Event, times: int) -> None:
        self._clearing.again(event, times)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for site, mixing in self._clearing.mixings.items():
            draft = self._drafts.get(site)
            if draft is not None:
                self._complete(draft, mixing)


def stepped_at(mixing: MixedLine, run: Progress) -> str:
    """Return the label for the line of the step: its number and the kind of the optimizer."""
    kind = run.optimizers[mixing.optimizer].kind if mixing.optimizer in run.optimizers else "optimizer"
    return f"step {mixing.first_step}, {kind}"


def added_at(mixing: MixedLine) -> tuple[Mark, ...]:
    """Return a mark for the line that added to the gradients, or an empty tuple if it is unknown."""
    return (mixing.added,) if mixing.added.label else ()


def _times(ratio: float) -> str:
    """Return a factor with about two significant digits or all integer digits: "2.0x", "41x", "1,220x"."""
    return f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"
