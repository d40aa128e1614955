from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from truestep.events import AnomalyModeSeen, BackwardEnded, Event
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import missing
from truestep.syntax import Program, Suspicion

_FIRST, _STILL = 100, 200
"""Steps at which anomaly detection must be on, and still be on."""


class AnomalyModeLeftOn(Rule):
    """Anomaly detection, a tool for finding a NaN, is on for a long run.

    What it does
    ------------
    Checks at sampled backward passes if the anomaly detection of autograd is on. Reports a run in which it was on after
    100 steps and still on after 200.

    Why it matters
    --------------
    With anomaly detection, every operation of the forward pass stores a traceback, and every result of the backward
    pass is searched for NaN. On a CPU a step of a recurrent network took seven times as long, a step of a small
    convolutional network 1.6 times, a step of a small fully connected network about twice. The results do not change.

    Example
    -------
    ::

        torch.autograd.set_detect_anomaly(True)     # from the day when the loss was NaN
        for x, y in loader:
            ...

    Fix
    ---
    Turn it on only for the steps under investigation::

        with torch.autograd.detect_anomaly():
            criterion(model(x), y).backward()

    Known false alarms
    ------------------
    A long search for a rare NaN is reported too, since it has the same cost. Not reported: the first 100 steps of a
    run, and single steps under investigation.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
    """

    id = "anomaly-mode-left-on"
    since = "0.1"
    severity = Severity.SPEED
    account = "time"
    watches = (AnomalyModeSeen, BackwardEnded)
    needs: ClassVar[tuple[type[Event], ...]] = (BackwardEnded,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return missing.anomaly_mode_left_on(program)

    def __init__(self) -> None:
        super().__init__()
        self._step = -1
        """The latest sampled step with anomaly detection on."""

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if run.step > _STILL else "fewer than 200 optimizer steps")

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, AnomalyModeSeen):
            return
        before, self._step = self._step, run.step
        if before < _FIRST or run.step < _STILL:
            return
        draft = self.report(
            event.switch or event.site,
            "anomaly detection was left on",
            run=run,
            label="stores a traceback for every operation, and searches every gradient for NaN",
            related=(Mark(event.site, "the backward passes that it slows down"),) if event.switch else (),
            help="remove `set_detect_anomaly(True)`, or turn it on only for the steps under investigation",
            key=0,
        )
        draft.cost = "a step takes 1.6 to 7 times as long, as measured on small networks on a CPU"
        draft.count, draft.first_step = run.step - _FIRST + 1, _FIRST
