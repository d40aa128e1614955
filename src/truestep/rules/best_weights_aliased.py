"""Judged by memory: what a model is given to load is what it trained meanwhile."""

from __future__ import annotations

from truestep.events import Event, StateLoaded
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 10
"""Fewer steps than these may lie between edits through a state dict that is kept on purpose, and loaded after each."""


class BestWeightsAliased(Rule):
    """A state dict was kept without a copy: training changed it, and loading it restores nothing.

    What it does
    ------------
    Remembers when ``state_dict()`` was called. Finds a ``load_state_dict`` whose tensors are, all of them, the memory
    of the very module that loads them, after optimizer steps or a load of other weights have changed them.

    Why it matters
    --------------
    ``state_dict()`` copies nothing: its tensors are the live weights. The "best" weights that an early stop keeps this
    way are always the latest ones, "initial" weights are never reset, and nothing is raised. In the proof the model
    that is reported with an accuracy of 0.77 on the validation data is tested at 0.63; a copy keeps 0.73.

    Example
    -------
    ::

        if accuracy > best:
            best = accuracy
            best_state = model.state_dict()             # the live tensors
        ...
        model.load_state_dict(best_state)               # changes nothing

    Fix
    ---
    Copy the tensors when they are kept::

        best_state = copy.deepcopy(model.state_dict())

    Known false alarms
    ------------------
    None known. Quiet: a state dict that is loaded within 10 steps (some programs write to the weights through it), one
    of another model, and one with copies in it. A kept dict that is saved to a file, or loaded into another model, is
    not judged: some programs mean its latest values.

    References
    ----------
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.state_dict
    """

    id = "best-weights-aliased"
    since = "0.1"
    severity = Severity.ERROR
    watches = (StateLoaded,)
    needs = (StateLoaded,)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, StateLoaded) or event.taken is None:
            return
        if event.taken_steps < _LEAST_STEPS and not event.overwritten:
            return
        later = _later(event)
        name = f"`{run.model_name(event.model)}`" if event.model else "a model"
        self.report(
            event.taken,
            f"{name} was given its own live weights to load, and nothing was restored",
            run=run,
            label="kept without a copy: training changes it",
            related=(Mark(event.site, f"loads it {later}"),) if event.site else (),
            help="copy the weights when they are kept, `copy.deepcopy(model.state_dict())`",
            cost="the model goes on with the weights that were loaded meanwhile"
            if not event.taken_steps
            else f"the model has the weights of {later.replace(' later', '')} after those that were kept",
            unit="loads",
        )


def _later(event: StateLoaded) -> str:
    if not event.taken_steps:
        return "after other weights were loaded"
    return "1 step later" if event.taken_steps == 1 else f"about {event.taken_steps} steps later"
