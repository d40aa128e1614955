from __future__ import annotations

from truestep.events import BackwardEnded, Event, LoaderStarted, MixtureMeasured, OptimizerStepped, HandStepped, Site
from truestep.findings import Mark, Severity
from truestep.rules._rule import Draft, Progress, Rule


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
    yet. Gradients that another optimizer's backward left behind are reported only when they are stepped on.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    - https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html
    """

    id = "missing-zero-grad"
    since = "0.1"
    severity = Severity.ERROR
    watches = (BackwardEnded, OptimizerStepped, HandStepped, MixtureMeasured, LoaderStarted)
    needs = (BackwardEnded,)

    def __init__(self) -> None:
        super().__init__()
        self._added: Site | None = None
        self._used_at = 0
        self._last_step = 0
        self._draft: dict[int, Draft] = {}

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded(onto_used=count) if count:
                self._added = event.site
                self._used_at = max(0, run.step - 1)
            case OptimizerStepped(mixed=mixed) if mixed:
                name = run.optimizer_name(event.optimizer)
                kind = run.optimizers[event.optimizer].kind if event.optimizer in run.optimizers else "optimizer"
                self._draft[event.optimizer] = self.report(
                    event.site,
                    "optimizer stepped on gradients mixed with those of earlier steps",
                    run=run,
                    label=f"step {run.step}, {kind}",
                    related=(Mark(self._added, f"added to gradients already used at step {self._used_at}"),),
                    help=f"call `{name}.zero_grad()` before the backward pass, once per step",
                )
            case MixtureMeasured():
                draft = self._draft.get(event.optimizer)
                if draft is not None:
                    draft.cost = (
                        f"the gradient stepped on is {event.ratio:.1f}x the one the last backward made "
                        f"(norms measured at step {run.step})"
                    )
            case HandStepped(mixed=mixed) if mixed:
                self.report(
                    event.site,
                    "parameters were updated by hand from gradients mixed with those of earlier updates",
                    run=run,
                    label="adds to gradients that an update by hand has already used",
                    help="set `p.grad = None` for every parameter after the update",
                )
            case _:
                pass
