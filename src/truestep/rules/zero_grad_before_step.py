from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, GradientsZeroed, OptimizerStepped, RunEnded, Site, TapeRead
from truestep.findings import Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import order
from truestep.syntax import Program, Suspicion

_LEAST = 3
"""Least number of steps without their gradients; fewer can be steps skipped on purpose."""


class ZeroGradBeforeStep(Rule):
    """Gradients are cleared after the backward pass and before the step that should use them.

    What it does
    ------------
    Finds optimizers with gradients that a backward pass computes and that are cleared before every step, or before most
    steps, so that the step has no gradient.

    Why it matters
    --------------
    Nothing is learned, because the steps have no gradients. With ``set_to_none=False`` the gradients are zero instead
    of absent, and weight decay and momentum keep moving the parameters, which looks like training.

    Example
    -------
    ::

        loss.backward()
        optimizer.zero_grad()       # discards the new gradients
        optimizer.step()

    Fix
    ---
    Clear before the backward pass, or after the step::

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    Known false alarms
    ------------------
    None known. Not reported: clearing the gradients of single parameters to keep them fixed, clearing gradients left by
    another network's loss, and skipping single steps by clearing (after a non-finite loss).

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    id = "zero-grad-before-step"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    explains = ("loss-at-chance",)
    watches = (BackwardEnded, GradientsZeroed, OptimizerStepped, TapeRead)
    needs = (BackwardEnded, OptimizerStepped, steps(_LEAST))

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return order.zero_grad_before_step(program)

    def __init__(self) -> None:
        super().__init__()
        self._backward: Site | None = None
        self._cleared_at: dict[int, tuple[Site | None, Site | None]] = {}
        """Optimizer to the line that cleared its fresh gradients, and the line of their backward."""
        self._serves: dict[Site | None, int] = {}
        """Line of a backward pass to the one optimizer that holds all parameters that it reaches."""
        self._waiting: dict[int, Site | None] = {}
        """Optimizer to the latest such line since its last step."""
        self._lost: dict[int, int] = {}
        self._kept: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._guilty: dict[int, Site | None] = {}
        self._cleared = self._steps = 0
        """Number of calls that cleared unused gradients, and number of steps."""

    def unobserved(self, run: Progress) -> str:
        # If most gradients of the run are discarded, a line that discards those of the steps cannot be identified.
        most = self._cleared > 2 * self._steps
        return super().unobserved(run) or ("most gradients were cleared before any step" if most else "")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case TapeRead():
                owners = {number for p in event.reached for number in run.held_by.get(p, ())}
                self._serves.pop(event.site, None)
                if len(owners) == 1:
                    self._serves[event.site] = owners.pop()
            case BackwardEnded(in_step=False) if event.written:
                self._backward = event.site
                self._cleared_at.clear()
                if event.site in self._serves:
                    self._waiting[self._serves[event.site]] = event.site
            case GradientsZeroed(fresh=fresh) if fresh:
                for optimizer in run.cleared_by(event):
                    # After a step of another optimizer, the cleared gradients may be those of its loss.
                    backward = self._waiting.get(optimizer) if self._backward is None else self._backward
                    if backward is not None:
                        self._cleared_at[optimizer] = (event.site, backward)
                self._cleared += self._backward is not None
            case OptimizerStepped():
                self._steps += 1
                self._step(event, run)
                self._backward = None

    def _step(self, event: OptimizerStepped, run: Progress) -> None:
        number = event.optimizer
        cleared = self._cleared_at.pop(number, None)
        self._waiting.pop(number, None)
        self._count(event, 1)
        if cleared is None or not _lost(event):
            return
        self._first.setdefault(number, run.step)
        self._guilty.setdefault(number, cleared[0])
        lost = self._lost.get(number, 0)
        if lost < _LEAST or lost <= self._kept.get(number, 0):
            return
        site, backward = cleared
        new = site not in self._drafts
        draft = self.report(
            site,
            "gradients were cleared after the backward pass, before the step could use them",
            run=run,
            label="clears the gradients of the backward pass",
            related=(
                Mark(backward, "computed the gradients"),
                Mark(event.site, f"{run.optimizer_name(number)} stepped without any gradient"),
            ),
            help=f"move this call before the backward pass or after `{run.optimizer_name(number)}.step()`",
        )
        if new:
            draft.first_step, draft.count = self._first[number], lost

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, OptimizerStepped):
            self._steps += times
            self._count(event, times)
        elif isinstance(event, GradientsZeroed) and event.fresh:
            self._cleared += times

    def _count(self, event: OptimizerStepped, times: int) -> None:
        if _lost(event):
            self._lost[event.optimizer] = self._lost.get(event.optimizer, 0) + times
        elif event.fresh or event.mixed or event.by_hand:
            self._kept[event.optimizer] = self._kept.get(event.optimizer, 0) + times

    def ended(self, event: RunEnded, run: Progress) -> None:
        for number, site in self._guilty.items():
            if self._kept.get(number, 0) >= self._lost.get(number, 0):
                self.withdraw(site)


def _lost(event: OptimizerStepped) -> bool:
    left = event.fresh or event.mixed or event.reused or event.by_hand
    return bool(event.cleared) and not left and not event.closure
