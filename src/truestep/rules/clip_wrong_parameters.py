from __future__ import annotations

from collections.abc import Iterator

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._clipping import is_limit
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import parameters
from truestep.syntax import Program, Suspicion


class ClipWrongParameters(Rule):
    """The clipped parameters are not those that the optimizer steps.

    What it does
    ------------
    Reports steps on fresh gradients if the only clip before them got no parameters (an exhausted generator), or only
    parameters that this optimizer does not hold, and no other optimizer uses their clipped gradients afterwards.

    Why it matters
    --------------
    The step uses the full gradient, so the limit has no effect. A clip without parameters returns a norm of zero;
    PyTorch warns about an empty generator, but not about an empty ``filter``, ``map`` or list.

    Example
    -------
    ::

        params = filter(lambda p: p.requires_grad, model.parameters())
        optimizer = torch.optim.SGD(params, lr=0.05)            # exhausts the generator
        ...
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, max_norm=1.0)    # clips nothing
        optimizer.step()

    Fix
    ---
    Keep the parameters in a list, or call ``model.parameters()`` again::

        params = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(params, lr=0.05)

    Known false alarms
    ------------------
    None known. Not reported: clipping one part of a model, clipping its parts one by one, and clipping the parameters
    of one of two optimizers that step after the same backward pass.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """

    id = "clip-wrong-parameters"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (
        ev.BackwardEnded,
        ev.GradientsClipped,
        ev.GradientsZeroed,
        ev.HandStepped,
        ev.OptimizerStepped,
        ev.ScalerStepped,
    )
    needs = (ev.GradientsClipped, ev.OptimizerStepped)
    leads_to = ("nan-or-inf", "update-exceeds-weights")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return parameters.clip_wrong_parameters(program)

    def __init__(self) -> None:
        super().__init__()
        self._backward = False
        self._clips: list[ev.GradientsClipped] = []
        """Clips since the latest step, after the first backward pass."""
        self._doubtful: tuple[int, ev.GradientsClipped, ev.OptimizerStepped] | None = None
        """A clip of parameters of other optimizers, with the step that it did not limit and that step's number."""
        self._useful: set[Site | None] = set()
        self._partly = False
        """True after a step on gradients that its only clip did not get."""

    def unobserved(self, run: Progress) -> str:
        part = "a part of the gradients was clipped, which can be meant" if self._partly else ""
        return super().unobserved(run) or part

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.BackwardEnded(in_step=False) if event.written:
                self._backward = True
            case ev.GradientsClipped():
                if self._backward:
                    self._clips.append(event)
            case ev.GradientsZeroed():
                self._zeroed(event, run)
            case ev.OptimizerStepped():
                self._used(event)
                self._step(event, run)
                self._close()
            case ev.HandStepped() | ev.ScalerStepped(skipped=True):
                self._close()

    def _close(self) -> None:
        self._backward = False
        self._clips.clear()

    def _step(self, event: ev.OptimizerStepped, run: Progress) -> None:
        if not (event.fresh or event.mixed) or len(self._clips) != 1 or event.closure:
            return
        clip = self._clips[0]
        if not is_limit(clip):
            return
        self._partly = self._partly or (clip.unclipped > 0 and clip.optimizer == event.optimizer)
        if not clip.given:
            self._found(clip, event, run, "it got no parameters")
            return
        if clip.foreign == clip.given:
            self._found(clip, event, run, "it got parameters that no optimizer holds")
        elif clip.observed == clip.given and event.optimizer not in clip.optimizers:
            if clip.fresh and clip.optimizers:
                self._doubtful = (run.step, clip, event)
            elif clip.optimizers:
                self._found(clip, event, run, _others(clip, run))

    def _used(self, event: ev.OptimizerStepped) -> None:
        """Accept the clips of parameters that the stepping optimizer holds: they are for this step."""
        for clip in [*self._clips, *([self._doubtful[1]] if self._doubtful else [])]:
            if event.optimizer in clip.optimizers:
                self._useful.add(clip.site)
                self._doubtful = None
                self.withdraw(clip.site)

    def _zeroed(self, event: ev.GradientsZeroed, run: Progress) -> None:
        """Report the doubtful clip if its gradients are cleared before any step: it had no effect."""
        if self._doubtful is None or not event.fresh:
            return
        number, clip, step = self._doubtful
        self._doubtful = None
        if number + 1 == run.step and event.optimizer in clip.optimizers:
            self._found(clip, step, run, _others(clip, run))

    def _found(self, clip: ev.GradientsClipped, step: ev.OptimizerStepped, run: Progress, label: str) -> None:
        if clip.site in self._useful:
            return
        name = run.optimizer_name(step.optimizer)
        draft = self.report(
            clip.site,
            "gradients were clipped for other parameters than those of the step",
            run=run,
            label=label,
            related=(Mark(step.site, f"{name} stepped on gradients without the limit"),),
            help=f"pass the parameters that `{name}` holds to the clip, as a list",
            confidence=Confidence.LOW,
        )
        if draft.count > 1:
            draft.confidence = Confidence.HIGH


def _others(clip: ev.GradientsClipped, run: Progress) -> str:
    names = ", ".join(run.optimizer_name(number) for number in clip.optimizers)
    return f"it got only parameters of {names}"
