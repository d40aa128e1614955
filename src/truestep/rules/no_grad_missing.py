from __future__ import annotations

from dataclasses import dataclass

from truestep.events import BackwardEnded, BatchDrawn, Event, GradientsTaken, ModelCalled, OptimizerStepped, RunEnded
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule


@dataclass(slots=True)
class _Phase:
    """Calls of one model in eval mode with gradients on, none of which a backward pass has used so far."""

    first: ModelCalled
    step: int
    calls: int = 0
    batches: int = 0
    drawn: int = -1


class NoGradMissing(Rule):
    """An evaluation records graphs that no backward pass uses.

    What it does
    ------------
    Finds phases of calls in eval mode whose results track gradients, with no backward pass and no gradient taken before
    the model is trained again or the run ends.

    Why it matters
    --------------
    Every such call keeps its activations until its result is freed: memory for nothing, and time for recording. Where
    results are collected, all graphs stay alive together, and the evaluation runs out of memory where training fits.

    Example
    -------
    ::

        model.eval()                        # changes layers, not the recording
        for x, y in val_loader:
            outputs.append(model(x))        # each with its whole graph

    Fix
    ---
    Switch the recording off for the evaluation::

        model.eval()
        with torch.no_grad():
            for x, y in val_loader:
                outputs.append(model(x))

    Known false alarms
    ------------------
    None known. Calls whose results reach a backward pass or ``torch.autograd.grad`` (saliency, adversarial examples,
    derivatives by the input) are not reported, nor are frozen models, whose results track nothing. Calls without a
    loader are reported with low confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
    """

    id = "no-grad-missing"
    since = "0.1"
    severity = Severity.WARNING
    watches = (ModelCalled, BatchDrawn, BackwardEnded, GradientsTaken, OptimizerStepped)
    needs = (ModelCalled, BackwardEnded)

    def __init__(self) -> None:
        super().__init__()
        self._phases: dict[int, _Phase] = {}
        self._training: set[int] = set()
        self._trained: set[int] = set()
        self._drawn = 0
        self._evaluated = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._evaluated else "no model call in eval mode")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BatchDrawn():
                self._drawn += 1
            case ModelCalled(training=True, grad=True):
                self._training.add(event.model)
                self._close(event.model, run)
            case ModelCalled(training=False):
                self._evaluated = True
                if event.grad and event.tracked:
                    phase = self._phases.setdefault(event.model, _Phase(event, run.step))
                    phase.calls += 1
                    phase.batches += event.loader is not None and phase.drawn != self._drawn
                    phase.drawn = self._drawn
            case BackwardEnded():
                self._trained |= self._training
                self._training.clear()
                self._phases.clear()
            case GradientsTaken() | OptimizerStepped():
                self._phases.clear()
            case _:
                pass

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how in ("finished", "exited"):
            for model in list(self._phases):
                self._close(model, run)

    def _close(self, model: int, run: Progress) -> None:
        """Judge a phase that no backward pass can use any more."""
        phase = self._phases.pop(model, None)
        if phase is None or phase.calls < 2 or model not in self._trained:
            return
        site, name = phase.first.site, run.model_name(model)
        where = f" over `{run.loader_name(phase.first.loader)}`" if phase.batches else ""
        draft = self.report(
            site,
            f"an evaluation of `{name}` recorded graphs that no backward pass used",
            run=run,
            label=f"{phase.calls} calls{where}, eval mode, gradients on",
            cost=f"{phase.calls} graphs with their activations recorded in one evaluation, none of them used",
            help="wrap the evaluation in `with torch.no_grad():`",
            confidence=Confidence.HIGH if phase.batches >= 2 else Confidence.LOW,
            unit="evaluations",
        )
        if draft.count == 1:
            draft.first_step = phase.step
