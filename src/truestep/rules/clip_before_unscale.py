from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, GradientsClipped, LossScaled, ScalerBuilt, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._clipping import is_limit
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import order
from truestep.syntax import Program, Suspicion

_ORDINARY = 1000.0
"""Above this max_norm, a limit is probably multiplied by the scale on purpose."""
_PART = 0.1
"""A limit above this fraction of the initial scale is probably multiplied on purpose, too."""


class ClipBeforeUnscale(Rule):
    """Gradients are clipped while they still carry the scale of a GradScaler.

    What it does
    ------------
    Reports clips of gradients from a scaled loss without ``scaler.unscale_(optimizer)`` before them.

    Why it matters
    --------------
    The limit is compared with gradients that are too large by the scale, initially 65536. Every step is limited to
    ``max_norm / scale``, so training almost stops, and the size of the steps changes with the scale.

    Example
    -------
    ::

        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()

    Fix
    ---
    Remove the scale first::

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()

    Known false alarms
    ------------------
    A limit multiplied by ``scaler.get_scale()`` is correct without ``unscale_``. Limits above 1000, or above a tenth of
    the initial scale, are assumed to be of this kind and have low confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping
    """

    id = "clip-before-unscale"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    missing_call = "unscale_"
    watches = (ScalerBuilt, BackwardEnded, GradientsClipped)
    needs = (ScalerBuilt, LossScaled, GradientsClipped)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return order.clip_before_unscale(program)

    def __init__(self) -> None:
        super().__init__()
        self._backward: Site | None = None
        self._ordinary = _ORDINARY

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ScalerBuilt(scale=scale) if scale:
                self._ordinary = min(self._ordinary, _PART * scale)
            case BackwardEnded(scaled=True):
                self._backward = event.site
            case GradientsClipped(scaled=True) if event.fresh and is_limit(event):
                name = run.optimizer_name(event.optimizer)
                self.report(
                    event.site,
                    "gradients were clipped while they carried the scale of the GradScaler",
                    run=run,
                    label=f"compares max_norm {event.max_norm:g} with scaled gradients",
                    related=(Mark(self._backward, "computed scaled gradients"),) if self._backward else (),
                    help=f"call `scaler.unscale_({name})` before the clip",
                    confidence=Confidence.LOW if event.max_norm > self._ordinary else None,
                )
