from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    GradientsTaken,
    ModelCalled,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Draft, Progress, Rule
from truestep.rules._syntax.steps import gradients
from truestep.syntax import Program, Suspicion


@dataclass(slots=True)
class _Phase:
    """Calls of one model with gradients on, as in an evaluation, that no backward pass has used so far."""

    first: ModelCalled
    step: int
    measured: bool = False
    """Whether the source shows that no backward pass can use them."""
    calls: int = 0
    batches: int = 0
    drawn: int = -1


@dataclass(slots=True)
class _Closed:
    """A pass over a loader that ended with further training. The next backward pass may still use its graphs."""

    draft: Draft
    backwards: int = 0


class NoGradMissing(Rule):
    """An evaluation records graphs that no backward pass uses.

    What it does
    ------------
    Finds phases of calls in eval mode with results that track gradients, and no backward pass or ``autograd.grad``
    before the model is trained again or the run ends. A phase is a pass over a loader, or calls without a loader (a
    whole tensor, slices) that recur between training steps. Calls in train mode are judged as well if the source shows
    that their results are only compared with targets; a single call is not: its graph is freed at once.

    Why it matters
    --------------
    Every such call keeps its activations until its result is freed, which wastes memory and the time of recording. If
    results are collected, all graphs stay alive, and the evaluation runs out of memory although the training fits.

    Example
    -------
    ::

        model.eval()                        # sets the mode of layers; gradients stay on
        for x, y in val_loader:
            outputs.append(model(x))        # each with its whole graph

    Fix
    ---
    Turn gradients off for the evaluation::

        model.eval()
        with torch.no_grad():
            for x, y in val_loader:
                outputs.append(model(x))

    Known false alarms
    ------------------
    None known. Not reported: calls with results that reach a backward pass or ``torch.autograd.grad`` (saliency,
    adversarial examples, derivatives by the input), and frozen models, which track no gradients. A target that is
    computed in eval mode for the next loss looks the same until the end of the run. Calls without a loader are
    therefore reported with medium confidence if the run finished with such calls, and with low confidence otherwise.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
    """

    id = "no-grad-missing"
    since = "0.1"
    severity = Severity.WARNING
    account = "calls"
    costs_resources = True
    cost_between_steps = True
    watches = (ModelCalled, BatchDrawn, BackwardEnded, GradientsTaken, OptimizerStepped)
    needs = (ModelCalled, BackwardEnded)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return gradients.no_grad_missing(program)

    def __init__(self) -> None:
        super().__init__()
        self._phases: dict[int, _Phase] = {}
        self._closed: dict[int, _Closed] = {}
        self._before: dict[tuple[int, Site | None], tuple[int, int]] = {}
        """Model and first line of phases without a loader, to the steps of the first and the latest one."""
        self._training: set[int] = set()
        self._trained: set[int] = set()
        self._drawn = 0
        self._evaluated = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._evaluated else "no evaluation of a trained model")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BatchDrawn():
                self._drawn += 1
            case ModelCalled():
                self._called(event, run)
            case BackwardEnded():
                self._trained |= self._training
                self._training.clear()
                self._clear(run)
                self._outlived()
            case GradientsTaken() | OptimizerStepped():
                self._clear(run)

    def _called(self, call: ModelCalled, run: Progress) -> None:
        # In train mode and without a loader it may be a rollout, with actions that an environment gets.
        compared = call.use == "compared" and (not call.training or call.loader is not None)
        measured = call.only_read and (compared or (call.use == "loss" and not call.training))
        if call.training and call.grad and not measured:
            self._training.add(call.model)
            self._close(call.model, run)
            return
        self._evaluated |= call.model in self._trained and (measured or not call.training)
        if call.grad and call.tracked:
            phase = self._phases.setdefault(call.model, _Phase(call, run.step, measured))
            phase.measured &= measured
            phase.calls += 1
            phase.batches += call.loader is not None and phase.drawn != self._drawn
            phase.drawn = self._drawn

    def _clear(self, run: Progress) -> None:
        """Judge calls that no backward pass can have used; forget the others."""
        for model in [model for model, phase in self._phases.items() if phase.measured]:
            self._close(model, run)
        self._phases.clear()

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how in ("finished", "exited"):
            for model in list(self._phases):
                self._close(model, run, over=True)

    def _outlived(self) -> None:
        """Confirm passes over a loader after two later backward passes, as after an epoch's evaluation."""
        for model, closed in list(self._closed.items()):
            closed.backwards += 1
            if closed.backwards == 2:
                self._closed.pop(model).draft.confidence = Confidence.HIGH

    def _close(self, model: int, run: Progress, *, over: bool = False) -> None:
        """Judge a phase that ended because its model is trained again or the run is over."""
        phase = self._phases.pop(model, None)
        if phase is None or model not in self._trained:
            return
        passes = phase.batches >= 2
        site, name, first = phase.first.site, run.model_name(model), phase.step
        if phase.batches < 2:
            first, latest = self._before.get((model, site), (phase.step, phase.step))
            self._before[model, site] = first, phase.step
            if phase.calls < 2 and (phase.first.training or latest == phase.step):
                return
        where = f" over `{run.loader_name(phase.first.loader)}`" if 2 * phase.batches > phase.calls else ""
        calls = f"{phase.calls} {'call' if phase.calls == 1 else 'calls'}"
        graphs = f"{phase.calls} {'graph with its' if phase.calls == 1 else 'graphs with their'} activations"
        draft = self.report(
            site,
            f"an evaluation of `{name}` recorded graphs that no backward pass used",
            run=run,
            label=f"{calls}{where}, {'train' if phase.first.training else 'eval'} mode, gradients on",
            cost=f"{graphs} recorded in one evaluation and not used",
            help="wrap the evaluation in `with torch.no_grad():`",
            confidence=Confidence.LOW,
            unit="evaluations",
        )
        if draft.count == 1:
            draft.first_step = first
            draft.count += first < phase.step  # the first of them was held back
        if draft.confidence is not Confidence.LOW:
            return
        if over or phase.measured:  # no backward pass can use them any more
            draft.confidence = Confidence.HIGH if passes else Confidence.MEDIUM
        elif passes:
            self._closed[model] = _Closed(draft)
