from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, GradientsClipped, HandStepped, OptimizerStepped, Site
from truestep.findings import Confidence, Mark
from truestep.rules._clipping import ClipPlace, MisplacedClip
from truestep.rules._rule import Progress
from truestep.rules._syntax.steps import order
from truestep.syntax import Program, Suspicion


class ClipBeforeBackward(MisplacedClip):
    """Gradients are clipped before the backward pass that computes them.

    What it does
    ------------
    Reports clips that get no gradient at all, or only those of the last step, if the backward pass and the step follow
    without another clip between them.

    Why it matters
    --------------
    The step uses the full gradient, so the limit has no effect. The clip returns a norm of zero or the norm of the
    previous step, so logged norms are wrong as well.

    Example
    -------
    ::

        loss = criterion(model(x), y)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        loss.backward()
        optimizer.step()

    Fix
    ---
    Clip between the backward pass and the step::

        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()

    Known false alarms
    ------------------
    None known. Not reported: a clip with an infinite or very large ``max_norm``, which only reads the norm, and a first
    clip if a second one follows the backward pass.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    id = "clip-before-backward"
    since = "0.1"
    account = "gradients"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return order.clip_before_backward(program)

    def __init__(self) -> None:
        super().__init__()
        self._early: dict[Site | None, GradientsClipped] = {}
        self._backward: Site | None = None

    def observe(self, event: Event, run: Progress) -> None:
        place = self._clipping.observe(event, run)
        match event:
            case GradientsClipped():
                if place is ClipPlace.BEFORE_BACKWARD:
                    self._early[event.site] = event
                elif event.fresh:
                    self._early.clear()
            case BackwardEnded() if event.written and self._early:
                self._backward = event.site
            case HandStepped():
                self._close()
            case OptimizerStepped():
                if self._backward is not None and (event.fresh or event.mixed):
                    for clip in self._early.values():
                        if clip.optimizer in (None, event.optimizer):
                            self._found(clip, event, run)
                self._close()

    def _close(self) -> None:
        self._early.clear()
        self._backward = None

    def _found(self, clip: GradientsClipped, step: OptimizerStepped, run: Progress) -> None:
        state = "all its gradients are those of the last step" if clip.used else "no gradient exists yet"
        draft = self.report(
            clip.site,
            "gradients were clipped before the backward pass that computes them",
            run=run,
            label=state,
            related=(
                Mark(self._backward, "computed the gradients afterwards"),
                Mark(step.site, "stepped on them without the limit"),
            ),
            help=f"move the clip between the backward pass and `{run.optimizer_name(step.optimizer)}.step()`",
            confidence=Confidence.LOW,
        )
        if draft.count > 1:
            draft.confidence = Confidence.HIGH
