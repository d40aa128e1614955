from __future__ import annotations

from truestep.events import Event, GradientsClipped
from truestep.findings import Confidence, Mark
from truestep.rules._clipping import MisplacedClip, Place
from truestep.rules._rule import Progress


class ClipAfterStep(MisplacedClip):
    """Gradients are clipped after the step that has already used them.

    What it does
    ------------
    Finds clips that stand behind the step in the loop: all gradients they are given have been used by a step, or are
    cleared already, and no backward pass has run since.

    Why it matters
    --------------
    The step has followed the full gradient: a limit was asked for and none holds. One bad batch moves the parameters as
    far as it would without the clip.

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
    None known. A clip with an infinite or very large ``max_norm``, which is there to read the norm, is not reported,
    and neither is a second clip where the optimizer also steps on clipped gradients.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    id = "clip-after-step"
    since = "0.1"

    def observe(self, event: Event, run: Progress) -> None:
        place = self._clipping.observe(event, run)
        if not isinstance(event, GradientsClipped) or place is not Place.AFTER_STEP:
            return
        state = "have been used by the step" if event.used else "are cleared already"
        draft = self.report(
            event.site,
            "gradients were clipped after the step that used them",
            run=run,
            label=f"all gradients given to it {state}",
            related=(Mark(self._clipping.step_of(event), "stepped on the gradients without the limit"),),
            help=f"move the clip between the backward pass and `{run.optimizer_name(event.optimizer)}.step()`",
            confidence=Confidence.LOW,
        )
        if draft.count == 1:
            draft.first_step = max(0, run.step - 1)
        else:
            draft.confidence = Confidence.HIGH
