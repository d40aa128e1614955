from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, GradientScaleRead, ScalerBuilt
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import scaled
from truestep.syntax import Program, Suspicion


class ScalerMisused(Rule):
    """Gradients with and without the scale of a GradScaler are confused.

    What it does
    ------------
    Determines from the tape, at sampled steps, which backward passes came from a scaled loss. Reports three mistakes:

    - an optimizer steps on gradients that carry the scale: `optimizer.step()` instead of `scaler.step(optimizer)`;
    - `scaler.step()` divides the gradients of a loss that was never scaled;
    - a backward pass adds scaled gradients to gradients that `unscale_()` has already divided.

    Why it matters
    --------------
    A step is too large by the scale, initially 65536, or one of the losses counts less or more than the others by that
    factor. In the proof the second of two losses was not scaled (scale 1024), and its task was hardly learned: 39 % of
    the held-out points were right instead of 97 %. PyTorch raises an error for other misuse (a missing or early
    `update()`, `unscale_()` twice), but not for these mistakes.

    Example
    -------
    ::

        scaler.scale(loss_a).backward()
        loss_b.backward()               # not scaled, but later divided by the scale
        scaler.step(optimizer)
        scaler.update()

    Fix
    ---
    Scale every loss, unscale once after the last backward pass, and let the scaler step::

        scaler.scale(loss_a).backward()
        scaler.scale(loss_b).backward()
        scaler.unscale_(optimizer)      # only to read or clip gradients
        scaler.step(optimizer)
        scaler.update()

    Known false alarms
    ------------------
    None known. Not judged: losses and gradients that are scaled or unscaled by hand, losses from compiled functions,
    scalers with a custom `scale` method, and optimizers that receive the scale. The updates of Adam and similar
    optimizers do not depend on the size of gradients: their own steps on scaled gradients have low confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    id = "scaler-misused"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (GradientScaleRead,)
    needs = (ScalerBuilt, GradientScaleRead)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return scaled.scaler_misused(program)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, GradientScaleRead):
            return
        built, name = run.optimizers.get(event.optimizer), run.optimizer_name(event.optimizer)
        if event.late is not None:
            self.report(
                event.late,
                "a backward pass added scaled gradients to gradients that were unscaled before",
                run=run,
                label="adds gradients that carry the scale",
                related=(Mark(event.unscaled, "unscaled the earlier gradients"),) if event.unscaled else (),
                help=f"call `scaler.unscale_({name})` once, after the last backward pass before the step",
                unit="sampled steps",
            )
        elif not event.scaler and event.scaled is not None:
            self.report(
                event.site,
                "the optimizer stepped on gradients that carry the scale of the GradScaler",
                run=run,
                label=f"{name} steps without the scaler",
                related=(Mark(event.scaled, "computed scaled gradients"),),
                help=f"call `scaler.step({name})`, then `scaler.update()`",
                confidence=Confidence.LOW if built is not None and built.scale_free else None,
                unit="sampled steps",
            )
        elif event.scaler and event.plain is not None:
            self.report(
                event.plain,
                "the GradScaler divided gradients of a loss that was not scaled",
                run=run,
                label="the loss is not scaled",
                related=(Mark(event.site, "divides all gradients by the scale"),) if event.site else (),
                help="call `scaler.scale(loss).backward()` with this loss",
                unit="sampled steps",
            )
