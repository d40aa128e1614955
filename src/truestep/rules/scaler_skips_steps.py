from __future__ import annotations

from dataclasses import dataclass

from truestep import events as ev
from truestep.events import Event
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule

_STREAK = 100
"""A scale of 65536 that is halved this often is below any scale that 16 bits need."""


@dataclass(slots=True)
class _Attempts:
    """Calls of ``scaler.step`` for one optimizer."""

    made: int = 0
    skipped: int = 0
    streak: int = 0
    """Number of calls skipped in a row, up to the latest."""


class ScalerSkipsSteps(Rule):
    """The GradScaler skips every step, because gradients are not finite at any scale.

    What it does
    ------------
    Counts calls of ``scaler.step(optimizer)`` that skipped the step. Reports the line after 100 skipped calls in a row
    with finite losses: by then the scale has been halved far below the need of any gradient.

    Why it matters
    --------------
    For infinite or NaN gradients, a GradScaler skips the step and halves its scale without a message. This is correct
    in the first few steps, until the scale fits. If a gradient is NaN at any scale (``sqrt`` at 0, a division hidden by
    ``torch.where``), it never ends: the loop runs, the loss is finite, and the weights do not change. In the proof 9 %
    of held-out points find a neighbour of their class instead of 82 %.

    Example
    -------
    ::

        distance = (a - b).pow(2).sum(-1).sqrt()        # its gradient is NaN where a equals b
        scaler.scale(loss(distance)).backward()
        scaler.step(optimizer)                          # skipped, every time
        scaler.update()

    Fix
    ---
    Make the gradient finite at its source; ``torch.autograd.set_detect_anomaly(True)`` names the operation::

        distance = ((a - b).pow(2).sum(-1) + 1e-8).sqrt()

    Known false alarms
    ------------------
    None known. Not reported: the skipped steps until the scale fits (16 to 40 from the default scale), and losses that
    are NaN, which belong to `nan-or-inf`. Fused optimizers skip steps internally, which is not detected.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling
    """

    id = "scaler-skips-steps"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (ev.HandStepped, ev.LossNotFinite, ev.OptimizerStepped, ev.ScalerStepped)
    needs = (ev.ScalerStepped,)

    def __init__(self) -> None:
        super().__init__()
        self._attempts: dict[int, _Attempts] = {}

    def suspected(self) -> bool:
        return super().suspected() or any(attempts.made == attempts.skipped for attempts in self._attempts.values())

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.ScalerStepped(optimizer=int() as number):
                attempts = self._attempts.setdefault(number, _Attempts())
                attempts.made += 1
                attempts.skipped += event.skipped
                attempts.streak = attempts.streak + 1 if event.skipped else 0
                if attempts.streak >= _STREAK:
                    self._report(event, number, attempts, run)
            case ev.OptimizerStepped(optimizer=number) if number in self._attempts:
                self._attempts[number].streak = 0
            case ev.LossNotFinite() | ev.HandStepped():
                for attempts in self._attempts.values():
                    attempts.streak = 0

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, ev.ScalerStepped) and event.optimizer in self._attempts:
            attempts = self._attempts[event.optimizer]
            attempts.made += times
            attempts.skipped += times if event.skipped else 0

    def _report(self, event: ev.ScalerStepped, number: int, attempts: _Attempts, run: Progress) -> None:
        built, name = run.optimizers.get(number), run.optimizer_name(number)
        draft = self.report(
            event.site,
            f"the GradScaler skipped at least {_STREAK} steps of `{name}` in a row",
            run=run,
            label="skips the step",
            related=(Mark(built.site, f"built {name}"),) if built is not None and built.site is not None else (),
            help="find the operation with the non-finite gradient: `torch.autograd.set_detect_anomaly(True)`",
            unit="scaler steps",
            key=number,
        )
        draft.count, draft.total = attempts.skipped, attempts.made
        draft.cost = f"{attempts.skipped} of {attempts.made} scaler steps changed no weight"
