from __future__ import annotations

from truestep.events import (
    BackwardEnded,
    Event,
    GradientsZeroed,
    LoaderStarted,
    MixtureMeasured,
    OptimizerStepped,
    RunEnded,
)
from truestep.findings import Severity
from truestep.rules._clearing import Clearing
from truestep.rules._rule import Progress, Rule


class ZeroGradOncePerEpoch(Rule):
    """Gradients are cleared when an epoch begins, and pile up over all of its steps.

    What it does
    ------------
    Finds steps on gradients to which a backward pass added although an earlier step had already used them, in runs that
    do clear them, but only where a pass over the loader begins: ``zero_grad()`` stands in the loop over epochs instead
    of the loop over batches. It looks at the gradients, so ``p.grad = None`` at that place counts as well.

    Why it matters
    --------------
    Step k of an epoch follows the sum of k gradients. Within the epoch this acts like momentum that never decays, then
    it starts from nothing again: the size of the updates depends on how many batches an epoch has.

    Example
    -------
    ::

        for epoch in range(epochs):
            optimizer.zero_grad()           # once for all batches of the epoch
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()

    Fix
    ---
    Move the call into the loop over batches::

        for epoch in range(epochs):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()

    Known false alarms
    ------------------
    None known. Accumulation clears after each step and is not reported, also where one step is made per epoch. In a run
    of a single epoch, a call before the first batch is taken for one at the top of the epoch.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    - https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html
    """

    id = "zero-grad-once-per-epoch"
    since = "0.1"
    severity = Severity.ERROR
    watches = (BackwardEnded, OptimizerStepped, MixtureMeasured, LoaderStarted, GradientsZeroed)
    needs = (BackwardEnded,)
    leads_to = ("nan-or-inf",)

    def __init__(self) -> None:
        super().__init__()
        self._clearing = Clearing()

    def observe(self, event: Event, run: Progress) -> None:
        self._clearing.observe(event, run)
        if isinstance(event, OptimizerStepped):
            self._settle(event, run)

    def _settle(self, event: OptimizerStepped, run: Progress) -> None:
        for site, mixing in self._clearing.mixings.items():
            if not self._clearing.once_per_epoch(mixing.optimizer):
                self.withdraw(site)
                continue
            if site in self._drafts and not (event.mixed and event.site == site):
                continue
            name = run.optimizer_name(mixing.optimizer)
            kind = run.optimizers[mixing.optimizer].kind if mixing.optimizer in run.optimizers else "optimizer"
            draft = self.report(
                site,
                "optimizer stepped on all gradients of the epoch so far, which are cleared only when an epoch begins",
                run=run,
                label=f"step {mixing.first_step}, {kind}",
                related=(mixing.added,) if mixing.added.label else (),
                help=f"move `{name}.zero_grad()` into the loop over batches, before the backward pass",
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
