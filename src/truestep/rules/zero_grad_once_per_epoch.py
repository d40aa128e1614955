from __future__ import annotations

from collections.abc import Iterator

from truestep.rules._clearing import MixedLine, MixedSteps, added_at, stepped_at
from truestep.rules._rule import Draft, Progress
from truestep.rules._syntax.steps import order
from truestep.syntax import Program, Suspicion


class ZeroGradOncePerEpoch(MixedSteps):
    """Gradients are cleared only at the start of an epoch and accumulate over all its steps.

    What it does
    ------------
    Reports steps on gradients that an earlier step had already used and that a backward pass then added to, in runs
    that clear gradients only at the start of a pass over the loader: ``zero_grad()`` is in the loop over epochs instead
    of the loop over batches. The rule reads the gradients themselves, so ``p.grad = None`` at that place counts, too.

    Why it matters
    --------------
    Step k of an epoch follows the sum of k gradients. Within the epoch this acts like momentum that never decays, and
    every epoch starts from zero again: the size of the updates depends on the number of batches in an epoch.

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
    None known. Gradient accumulation clears after each step and is not reported, even with one step per epoch. In a run
    of a single epoch, a call before the first batch counts as a call at the start of the epoch.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    - https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html
    """

    id = "zero-grad-once-per-epoch"
    since = "0.1"
    account = "gradients"
    explains = ("loss-at-chance",)
    of_epochs = True

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return order.zero_grad_once_per_epoch(program)

    def _tell(self, mixing: MixedLine, run: Progress) -> Draft:
        name = run.optimizer_name(mixing.optimizer)
        return self.report(
            mixing.site,
            "optimizer stepped on all gradients of the epoch so far, which are cleared only at the start of an epoch",
            run=run,
            label=stepped_at(mixing, run),
            related=added_at(mixing),
            help=f"move `{name}.zero_grad()` into the loop over batches, before the backward pass",
        )
