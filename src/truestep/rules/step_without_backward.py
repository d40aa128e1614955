from __future__ import annotations

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_EMPTY = 10
_READS_GRADIENTS = {
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
    """An optimizer steps although no backward pass made a gradient since the last step.

    What it does
    ------------
    Finds steps on the very gradients that an earlier step of the same optimizer has used, with no backward pass between
    them, and runs that draw batches or call a model for each step, but never run a backward pass.

    Why it matters
    --------------
    The first repeats an update that belongs to another batch: the effective lr of that batch doubles, momentum and the
    moments of Adam count it twice, and schedules run ahead. The second learns nothing.

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
    A benchmark that times ``optimizer.step()`` alone does this on purpose. Gradients set by hand (evolution strategies,
    federated averaging), closures, steps of a GradScaler and optimizers that share parameters are not reported.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step
    """

    id = "step-without-backward"
    since = "0.1"
    severity = Severity.ERROR
    watches = (ev.BackwardEnded, ev.BatchDrawn, ev.GradientsTaken, ev.HandStepped, ev.ModelCalled, ev.OptimizerStepped)
    needs = (ev.OptimizerStepped,)

    def __init__(self) -> None:
        super().__init__()
        self._backward_in_window = self._used_in_window = False
        self._ever_made = self._forward_ever = False
        self._fed: dict[int, Site | None] = {}
        """Optimizers that have stepped on gradients of a backward pass, and the line of that step."""
        self._active: dict[int, tuple[int, int]] = {}
        """The first and the latest of these steps."""
        self._empty: dict[tuple[int, Site | None], tuple[int, int]] = {}
        """Optimizers that stepped without any gradient, and where: the number of the first such step, how many."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.BackwardEnded():
                self._backward_in_window = self._ever_made = True
            case ev.GradientsTaken() | ev.HandStepped():
                self._ever_made = True
            case ev.ModelCalled(tracked=True):
                self._used_in_window = self._forward_ever = True
            case ev.BatchDrawn():
                self._used_in_window = True
            case ev.OptimizerStepped():
                self._step(event, run)
                self._backward_in_window = self._used_in_window = False
            case _:
                pass

    def _step(self, event: ev.OptimizerStepped, run: Progress) -> None:
        number = event.optimizer
        if event.fresh or event.mixed:
            self._fed[number] = event.site
            self._active[number] = (self._active.get(number, (run.step, 0))[0], run.step)
        elif event.by_hand or event.cleared or event.closure or event.scaler:
            self._ever_made = True
        elif event.reused:
            if not self._backward_in_window and number in self._fed and not self._shares(number, run):
                self._repeated(event, run)
        elif event.absent_grad == event.observed > 0 and self._used_in_window:
            first, count = self._empty.get((number, event.site), (run.step, 0))
            self._empty[number, event.site] = (first, count + 1)

    def _shares(self, number: int, run: Progress) -> bool:
        """Whether another optimizer at work holds some of its parameters: the gradient may have been the other's."""
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
            related=(Mark(fed, "a step that used the gradient of its own backward pass"),) if fed != event.site else (),
            help=f"remove this `{run.optimizer_name(event.optimizer)}.step()`, or run a backward pass before it",
            confidence=Confidence.LOW,
        )
        if draft.count > 1:
            draft.confidence = Confidence.HIGH

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, ev.OptimizerStepped) and (event.optimizer, event.site) in self._empty:
            first, count = self._empty[event.optimizer, event.site]
            self._empty[event.optimizer, event.site] = (first, count + times)

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
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
                label="none of the parameters has a gradient",
                help=f"call `loss.backward()` before `{built.name}.step()`",
                confidence=Confidence.HIGH if self._forward_ever else Confidence.MEDIUM,
            )
            draft.count, draft.first_step = count, first
