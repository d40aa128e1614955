"""Evidence from memory addresses: a model loads the same tensors that it trained meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, KeptTensorsChanged, StateLoaded
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import states
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 10
"""Fewer steps occur in programs that edit the weights through a kept state dict on purpose and load it after each."""


class BestWeightsAliased(Rule):
    """A state dict was kept without a copy: training changed it, and loading it restores nothing.

    What it does
    ------------
    Remembers the calls of ``state_dict()``. Reports a ``load_state_dict`` with only tensors that share memory with the
    module that loads them, after optimizer steps or a load of other weights have changed them.

    In programs that keep tensors themselves, looks at the variables that a branch for a new best figure assigns, and
    that are read elsewhere: tensors, and lists, tuples and dicts of them. Reports one with the memory of tensors that
    are trained, if these have changed from one look to the next while the best figure has kept its value.

    Why it matters
    --------------
    ``state_dict()`` copies nothing: its tensors are the live weights. The "best" weights kept by early stopping are
    then always the latest ones, "initial" weights are never reset, and no error is raised. In the proof, the model with
    a reported validation accuracy of 0.77 has a test accuracy of 0.63; with a copy it has 0.73.

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
    Keep a copy of the tensors::

        best_state = copy.deepcopy(model.state_dict())

    Known false alarms
    ------------------
    None known. Not reported: a state dict that is loaded within 10 steps (some programs write to the weights through
    it), a state dict of another model, and one that contains copies. A kept dict that is saved to a file or loaded into
    another model is not judged: some programs want its latest values. Of kept tensors, not reported: those that are
    read in the branch only, weights of trials that are undone if they are worse, a best figure that begins again in
    each pass of the loop (the best one of a list), and tensors that each update replaces by new ones.

    References
    ----------
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.state_dict
    """

    id = "best-weights-aliased"
    since = "0.1"
    severity = Severity.ERROR
    account = "state"
    watches = (KeptTensorsChanged, StateLoaded)
    needs = (StateLoaded,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        yield from states.best_weights_aliased(program)
        yield from states.tensors_aliased(program)

    def __init__(self) -> None:
        super().__init__()
        self._soon = False
        """Whether a model loaded its own live weights after few steps."""
        self._lines: set[tuple[str, int]] = set()
        """Lines of variables with tensors that were found to change."""

    def suspected(self) -> bool:
        return super().suspected() or self._soon

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, KeptTensorsChanged):
            self._changed(event, run)
            return
        if not isinstance(event, StateLoaded) or event.taken is None:
            return
        if event.taken_steps < _LEAST_STEPS and not event.overwritten:
            self._soon = True
            return
        if (event.taken.path, event.taken.line) in self._lines:
            return
        later = _later(event)
        name = f"`{run.model_name(event.model)}`" if event.model else "a model"
        self.report(
            event.taken,
            f"{name} loaded its own live weights, and nothing was restored",
            run=run,
            label="kept without a copy: training changes it",
            related=(Mark(event.site, f"loads it {later}"),) if event.site else (),
            help="keep a copy of the weights, `copy.deepcopy(model.state_dict())`",
            cost="the model continues with the weights that were loaded meanwhile"
            if not event.taken_steps
            else f"the model has the weights of {later.replace(' later', '')} after the state dict was kept",
            unit="loads",
        )

    def _changed(self, event: KeptTensorsChanged, run: Progress) -> None:
        several = event.tensors > 1
        if event.site is not None:
            self._lines |= {(event.site.path, line) for line in range(event.site.line, event.site.end_line + 1)}
            self._lines.add((event.site.path, event.site.line))
        self.report(
            event.site,
            f"`{event.name}` holds the tensors that are trained, and changes with them",
            run=run,
            label="kept without a copy: training changes it",
            related=(Mark(event.read, "is read here, with the weights of that moment"),) if event.read else (),
            help="keep a copy of each tensor, `w.detach().clone()`",
            unit="variables",
        ).cost = f"{event.tensors} tensor{'s' * several} changed while `{event.best}` stayed {event.value:g}"


def _later(event: StateLoaded) -> str:
    if not event.taken_steps:
        return "after other weights were loaded"
    return "1 step later" if event.taken_steps == 1 else f"about {event.taken_steps} steps later"
