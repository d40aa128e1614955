from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, HandStepped
from truestep.rules._clearing import MixedLine, MixedSteps, added_at, stepped_at
from truestep.rules._rule import Draft, Progress
from truestep.rules._syntax.steps import order
from truestep.syntax import Program, Suspicion


class MissingZeroGrad(MixedSteps):
    """An optimizer steps on gradients that still include those of earlier steps.

    What it does
    ------------
    Reports steps on gradients that an earlier step had already used and that a backward pass then added to. The rule
    reads the gradients themselves, so every way of clearing counts: ``optimizer.zero_grad()``, ``model.zero_grad()``,
    ``p.grad = None``, zeroing in place.

    Why it matters
    --------------
    Each step follows the sum of all gradients so far. The loss may still fall, because the sum acts like momentum that
    never decays, but the trained model is usually much worse.

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
    None known. Gradient accumulation over several backward passes before a step is not reported: those gradients have
    not been used yet. Gradients left behind by another optimizer's backward are reported only if a step uses them.
    Gradients cleared only at the start of each epoch belong to zero-grad-once-per-epoch; it may take until the second
    epoch to distinguish the two.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    - https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html
    """

    id = "missing-zero-grad"
    since = "0.1"
    account = "gradients"
    explains = ("loss-at-chance",)
    missing_call = "zero_grad"
    of_epochs = False

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return order.missing_zero_grad(program)

    def observe(self, event: Event, run: Progress) -> None:
        super().observe(event, run)
        if isinstance(event, HandStepped) and event.mixed:
            self.report(
                event.site,
                "parameters were updated by hand from gradients mixed with those of earlier updates",
                run=run,
                label="adds to gradients that an update by hand has already used",
                help="set `p.grad = None` for every parameter after the update",
                key=("by hand", event.site),
            )

    def _tell(self, mixing: MixedLine, run: Progress) -> Draft:
        return self.report(
            mixing.site,
            "optimizer stepped on gradients mixed with those of earlier steps",
            run=run,
            label=stepped_at(mixing, run),
            related=added_at(mixing),
            help=f"call `{run.optimizer_name(mixing.optimizer)}.zero_grad()` before the backward pass, once per step",
        )
