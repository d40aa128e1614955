from __future__ import annotations

from collections.abc import Iterator

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import missing
from truestep.syntax import Program, Suspicion

_LEAST_EMPTY = 10
"""Least number of steps without any gradient."""
_READS_GRADIENTS = {  # other optimizers may compute updates without gradients
    "SGD",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Rprop",
    "ASGD",
}


class StepWithoutBackward(Rule):
    """An optimizer steps although no backward pass has computed a gradient since the last step.

    What it does
    ------------
    Finds three cases:

    - steps on unchanged gradients that an earlier step of the same optimizer has used, with no backward pass between;
    - runs that draw batches or call a model for each step, but never run a backward pass;
    - whole runs in which the optimizer of a model that is called never has a gradient, while another optimizer trains.

    Why it matters
    --------------
    The first case repeats an update for an earlier batch: the effective lr of that batch doubles, momentum and the
    moments of Adam count it twice, and schedules run ahead. In the second case nothing is learned. In the third case
    one model learns nothing: a generator with samples that are detached even for its own loss, or a critic with a loss
    that is never differentiated.

    Example
    -------
    ::

        loss.backward()
        optimizer.step()
        log(loss)
        optimizer.step()        # the same gradient once more

    Fix
    ---
    Step once per backward pass, or once per window of several backward passes::

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    Known false alarms
    ------------------
    A benchmark that times only ``optimizer.step()``. Not reported: gradients set by hand (evolution strategies,
    federated averaging), closures, steps of a GradScaler and optimizers that share parameters. An optimizer for a part
    that waits (warm-up, a weight of zero, unused experts) is reported with low confidence, or with medium confidence if
    each optimizer of the run has a separate backward pass right before its step.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step
    """

    id = "step-without-backward"
    since = "0.1"
    severity = Severity.ERROR
    account = "steps"
    missing_call = "backward"
    watches = (ev.BackwardEnded, ev.BatchDrawn, ev.GradientsTaken, ev.HandStepped, ev.ModelCalled, ev.OptimizerStepped)
    needs = (ev.OptimizerStepped,)
    explains = (
        "loss-at-chance",
        "loss-never-changes",
    )

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return missing.step_without_backward(program)

    def __init__(self) -> None:
        super().__init__()
        self._backward_in_window = self._used_in_window = False
        self._ever_made = self._forward_ever = False
        self._fed: dict[int, Site | None] = {}
        """Optimizers that have stepped on gradients of a backward pass, and the line of that step."""
        self._active: dict[int, tuple[int, int]] = {}
        """Optimizer to the first and the latest of these steps."""
        self._had: set[int] = set()
        """Optimizers that may have had a gradient."""
        self._together: set[int] = set()
        """Optimizers that stepped with no backward pass since another optimizer's step: they share a loss."""
        self._tracked: set[int] = set()
        """Models that were called with gradients."""
        self._empty: dict[tuple[int, Site | None], tuple[int, int]] = {}
        """Optimizer and line of steps without any gradient after a model call or a batch, to the number of the first
        such step and their count."""
        self._absent: dict[int, tuple[Site | None, int, int]] = {}
        """Optimizer to the line and number of its first step without any gradient, and the count of such steps."""

    def suspected(self) -> bool:
        starved = any(number not in self._had for number in self._absent)
        return super().suspected() or starved or (bool(self._empty) and not self._ever_made)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.BackwardEnded():
                self._backward_in_window = self._ever_made = True
            case ev.GradientsTaken() | ev.HandStepped():
                self._ever_made = True
            case ev.ModelCalled(tracked=True):
                self._used_in_window = self._forward_ever = True
                self._tracked.add(event.model)
            case ev.BatchDrawn():
                self._used_in_window = True
            case ev.OptimizerStepped():
                self._step(event, run)
                self._backward_in_window = self._used_in_window = False

    def _step(self, event: ev.OptimizerStepped, run: Progress) -> None:
        number = event.optimizer
        if event.absent_grad < event.observed or event.closure or event.scaler:
            self._had.add(number)
        if not self._backward_in_window:
            self._together.add(number)
        if event.fresh or event.mixed:
            self._fed[number] = event.site
            self._active[number] = (self._active.get(number, (run.step, 0))[0], run.step)
        elif event.by_hand or event.cleared or event.closure or event.scaler:
            self._ever_made = True
        elif event.reused:
            if not self._backward_in_window and number in self._fed and not self._shares(number, run):
                self._repeated(event, run)
        elif event.absent_grad == event.observed > 0:
            self._without(event, run.step)

    def _without(self, event: ev.OptimizerStepped, step: int) -> None:
        number, site = event.optimizer, event.site
        where, first, count = self._absent.get(number, (site, step, 0))
        self._absent[number] = (where, first, count + 1)
        if self._used_in_window:
            first, count = self._empty.get((number, site), (step, 0))
            self._empty[number, site] = (first, count + 1)

    def _shares(self, number: int, run: Progress) -> bool:
        """Return True if another active optimizer holds some of its parameters: the gradient may be for the other."""
        rivals = {other for owners in run.held_by.values() if number in owners for other in owners} - {number}
        begun = self._active[number][0]
        return any(other in self._active and self._active[other][1] > begun for other in rivals)

    def _repeated(self, event: ev.OptimizerStepped, run: Progress) -> None:
        fed = self._fed[event.optimizer]
        draft = self.report(
            event.site,
            "optimizer stepped again on a gradient that a step had already used, with no backward pass between",
            run=run,
            label="no backward pass since the last step",
            related=(Mark(fed, "a step that used the gradient of a backward pass"),) if fed != event.site else (),
            help=f"remove this `{run.optimizer_name(event.optimizer)}.step()`, or run a backward pass before it",
            confidence=Confidence.LOW,
        )
        if draft.count > 1:
            draft.confidence = Confidence.HIGH

    def again(self, event: Event, times: int) -> None:
        if not isinstance(event, ev.OptimizerStepped):
            return
        number, key = event.optimizer, (event.optimizer, event.site)
        if key in self._empty:
            first, count = self._empty[key]
            self._empty[key] = (first, count + times)
        if number in self._absent:
            where, first, count = self._absent[number]
            self._absent[number] = (where, first, count + times)

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        if self._ever_made and event.how in ("finished", "exited"):
            self._starved(run)
        if self._ever_made or sum(count for _, count in self._empty.values()) < _LEAST_EMPTY:
            return
        for (number, site), (first, count) in self._empty.items():
            built = run.optimizers.get(number)
            if built is None or built.kind not in _READS_GRADIENTS:
                continue
            draft = self.report(
                site,
                "optimizer stepped without any gradient: no backward pass has run",
                run=run,
                label="no parameter has a gradient",
                help=f"call `loss.backward()` before `{built.name}.step()`",
                confidence=Confidence.HIGH if self._forward_ever else Confidence.MEDIUM,
            )
            draft.count, draft.first_step = count, first

    def _starved(self, run: Progress) -> None:
        """Report optimizers that never had a gradient, of models that ran, while another optimizer trained."""
        for number, (site, first, count) in self._absent.items():
            built, model = run.optimizers.get(number), self._model_of(number, run)
            trained = next((fed for other, fed in self._fed.items() if other != number), None)
            if built is None or built.kind not in _READS_GRADIENTS or number in self._had or count < _LEAST_EMPTY:
                continue
            if trained is None or model is None:
                continue
            draft = self.report(
                site,
                "optimizer stepped without any gradient in the whole run, while another one trained",
                run=run,
                label=f"no parameter of `{model.name}` ever had a gradient",
                related=(Mark(trained, "this step had gradients"),),
                help=f"run a backward pass of a loss that reaches `{model.name}`, with no `detach()` between",
                confidence=Confidence.LOW if self._together else Confidence.MEDIUM,
                unit="steps of this optimizer",
                key=("starved", number),
            )
            draft.count, draft.total, draft.first_step = count, count, first

    def _model_of(self, number: int, run: Progress) -> ev.ModelMet | None:
        """Return a model that ran with gradients and has all its trainable parameters in this optimizer, or None."""
        for model in run.models.values():
            known = [p for p in model.parameters if p in run.parameters and run.parameters[p].trainable]
            if model.model in self._tracked and known and all(number in run.held_by.get(p, ()) for p in known):
                return model
        return None
