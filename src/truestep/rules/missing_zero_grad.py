from __future__ import annotations

from truestep.events import (
    BackwardEnded,
    Event,
    GradientsZeroed,
    HandStepped,
    LoaderStarted,
    MixtureMeasured,
    OptimizerStepped,
    RunEnded,
)
from truestep.findings import Severity
from truestep.rules._clearing import Clearing
from truestep.rules._rule import Progress, Rule


class MissingZeroGrad(Rule):
    """An optimizer steps on gradients that still hold those of earlier steps.

    What it does
    ------------
    Finds steps on gradients to which a backward pass added although an earlier step had already used them. It looks at
    the gradients themselves, so every way of clearing counts: ``optimizer.zero_grad()``, ``model.zero_grad()``,
    ``p.grad = None``, zeroing in place.

    Why it matters
    --------------
    Each step then follows the sum of all gradients so far. The loss may still fall, because the sum acts like momentum
    that never decays, and the result is another, usually much worse, model.

    Example
    -------
    ::

        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()        # on this batch's gradient plus all earlier ones

    Fix
    ---
    Clear the gradients once per step, before the backward pass or right after the step::

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    Known false alarms
    ------------------
    None known. Accumulating over several backward passes before a step is not reported: those gradients were not used
    yet. Gradients that another optimizer's backward left behind are reported only when they are stepped on. Gradients
    that are cleared when an epoch begins, and only then, belong to zero-grad-once-per-epoch; which of the two it is may
    be known only when the second epoch begins.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    - https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html
    """

    id = "missing-zero-grad"
    since = "0.1"
    severity = Severity.ERROR
    watches = (BackwardEnded, OptimizerStepped, HandStepped, MixtureMeasured, LoaderStarted, GradientsZeroed)
    needs = (BackwardEnded,)
    leads_to = ("nan-or-inf",)

    def __init__(self) -> None:
        super().__init__()
        self._clearing = Clearing()

    def observe(self, event: Event, run: Progress) -> None:
        self._clearing.observe(event, run)
        match event:
            case OptimizerStepped():
                self._settle(event, run)
            case HandStepped(mixed=mixed) if mixed:
                self.report(
                    event.site,
                    "parameters were updated by hand from gradients mixed with those of earlier updates",
                    run=run,
                    label="adds to gradients that an update by hand has already used",
                    help="set `p.grad = None` for every parameter after the update",
                    key=("by hand", event.site),
                )
            case _:
                pass

    def _settle(self, event: OptimizerStepped, run: Progress) -> None:
        for site, mixing in self._clearing.mixings.items():
            if self._clearing.once_per_epoch(mixing.optimizer):
                self.withdraw(site)
                continue
            if site in self._drafts and not (event.mixed and event.site == site):
                continue
            name = run.optimizer_name(mixing.optimizer)
            kind = run.optimizers[mixing.optimizer].kind if mixing.optimizer in run.optimizers else "optimizer"
            draft = self.report(
                site,
                "optimizer stepped on gradients mixed with those of earlier steps",
                run=run,
                label=f"step {mixing.first_step}, {kind}",
                related=(mixing.added,) if mixing.added.label else (),
                help=f"call `{name}.zero_grad()` before the backward pass, once per step",
            )
            draft.count, draft.first_step = mixing.count, mixing.first_step
            draft.cost = self._clearing.cost(mixing.optimizer)

    def again(self, event: Event, times: int) -> None:
        self._clearing.again(event, times)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for site, mixing in self._clearing.mixings.items():
            draft = self._drafts.get(site)
            if draft is not None:
                draft.count, draft.cost = mixing.count, self._clearing.cost(mixing.optimizer)
