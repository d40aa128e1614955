from __future__ import annotations

from truestep.rules._clearing import MixedSteps, Mixing, added_at, stepped_at
from truestep.rules._rule import Draft, Progress


class ZeroGradOncePerEpoch(MixedSteps):
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
    of_epochs = True

    def _tell(self, mixing: Mixing, run: Progress) -> Draft:
        name = run.optimizer_name(mixing.optimizer)
        return self.report(
            mixing.site,
            "optimizer stepped on all gradients of the epoch so far, which are cleared only when an epoch begins",
            run=run,
            label=stepped_at(mixing, run),
            related=added_at(mixing),
            help=f"move `{name}.zero_grad()` into the loop over batches, before the backward pass",
        )
