from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, GradientsClipped
from truestep.findings import Confidence, Mark
from truestep.rules._clipping import ClipPlace, MisplacedClip
from truestep.rules._rule import Progress
from truestep.rules._syntax.steps import order
from truestep.syntax import Program, Suspicion


class ClipAfterStep(MisplacedClip):
    """Gradients are clipped after the step that has already used them.

    What it does
    ------------
    Reports clips that come after the step in the loop: a step has already used all gradients passed to the clip, or
    they are cleared, and no backward pass has run since.

    Why it matters
    --------------
    The step uses the full gradient, so the limit has no effect. One bad batch moves the parameters as far as without
    the clip.

    Example
    -------
    ::

        loss.backward()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)

    Fix
    ---
    Clip between the backward pass and the step::

        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()

    Known false alarms
    ------------------
    None known. Not reported: a clip with an infinite or very large ``max_norm``, which only reads the norm, and a
    second clip if the optimizer also steps on clipped gradients.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    id = "clip-after-step"
    since = "0.1"
    account = "gradients"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return order.clip_after_step(program)

    def observe(self, event: Event, run: Progress) -> None:
        place = self._clipping.observe(event, run)
        if not isinstance(event, GradientsClipped) or place is not ClipPlace.AFTER_STEP:
            return
        state = "were already used by the step" if event.used else "are already cleared"
        draft = self.report(
            event.site,
            "gradients were clipped after the step that used them",
            run=run,
            label=f"all its gradients {state}",
            related=(Mark(self._clipping.step_of(event), "stepped on the gradients without the limit"),),
            help=f"move the clip between the backward pass and `{run.optimizer_name(event.optimizer)}.step()`",
            confidence=Confidence.LOW,
        )
        if draft.count == 1:
            draft.first_step = max(0, run.step - 1)
        else:
            draft.confidence = Confidence.HIGH
