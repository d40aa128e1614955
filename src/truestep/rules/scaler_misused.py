from __future__ import annotations

from truestep.events import Event, GradientScaleRead, ScalerBuilt
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule


class ScalerMisused(Rule):
    """Gradients with the scale of a GradScaler and gradients without it are taken for each other.

    What it does
    ------------
    Reads from the tape, at sampled steps, which backward passes came from a scaled loss, and finds three mistakes:

    - an optimizer steps on gradients that carry the scale: `optimizer.step()` instead of `scaler.step(optimizer)`;
    - `scaler.step()` divides the gradients of a loss that was never scaled;
    - a backward pass adds scaled gradients to gradients that `unscale_()` has divided already.

    Why it matters
    --------------
    A step is too large by the scale, 65536 at first, or one of the losses counts that much less, or that much more,
    than the others. In the proof the second of two losses was not scaled (scale 1024), and its task was hardly learnt:
    39 % of the held-out points instead of 97 %. PyTorch raises for other misuse (a missing or early `update()`,
    `unscale_()` twice), but not for these.

    Example
    -------
    ::

        scaler.scale(loss_a).backward()
        loss_b.backward()               # not scaled, and yet divided by the scale
        scaler.step(optimizer)
        scaler.update()

    Fix
    ---
    Scale every loss, unscale once after the last backward pass, and let the scaler step::

        scaler.scale(loss_a).backward()
        scaler.scale(loss_b).backward()
        scaler.unscale_(optimizer)      # only where gradients are read or clipped
        scaler.step(optimizer)
        scaler.update()

    Known false alarms
    ------------------
    None known. Losses and gradients that are scaled or unscaled by hand, losses from compiled functions, scalers with a
    `scale` of their own, and optimizers that are given the scale are not judged. Adam and its kin do not care for the
    size of gradients: their own steps on scaled gradients have low confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html
    """

    id = "scaler-misused"
    since = "0.1"
    severity = Severity.ERROR
    watches = (GradientScaleRead,)
    needs = (ScalerBuilt, GradientScaleRead)

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
                related=(Mark(event.unscaled, "unscaled the gradients of before"),) if event.unscaled else (),
                help=f"call `scaler.unscale_({name})` once, after the last backward pass before the step",
                unit="sampled steps",
            )
        elif not event.scaler and event.scaled is not None:
            self.report(
                event.site,
                "the optimizer stepped on gradients that carry the scale of the GradScaler",
                run=run,
                label=f"{name} steps past the scaler",
                related=(Mark(event.scaled, "made scaled gradients"),),
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
