from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    Event,
    OptimizerLoaded,
    OptimizerStepped,
    RunStarted,
    SchedulerStepped,
    Site,
    StateLoaded,
    StateTaken,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import states
from truestep.syntax import Program, Suspicion


class StateNotLoaded(Rule):
    """A state is read, or kept, where it was to be loaded: nothing is restored.

    What it does
    ------------
    Follows the calls of ``state_dict()`` of modules, optimizers and schedules. Reports

    - a call with a result that the line discards;
    - a call that fills a dict with a kept state: the current weights replace the kept ones;
    - a copy of trained weights in a variable that no code reads, other than to compare it with None;
    - an optimizer that loads its moments and steps, while the weights that it holds have their first random values;
    - a training that goes on with weights from a file, and begins again with the moments, or with a schedule, although
      the file has them too;
    - a schedule that begins again because the file has the moments and not its position: its first step changes the
      rate that the optimizer has loaded by half or more.

    Why it matters
    --------------
    The program goes on with the state that it has: the last weights in place of the best, a teacher or a target network
    that never follows, a resumed run with new moments. No error is raised. In the proof, the restored model has an
    accuracy of 0.73 on held-out samples, the one that is not restored 0.63.

    Example
    -------
    ::

        if accuracy > best:
            best, best_state = accuracy, copy.deepcopy(model.state_dict())
        ...
        model.state_dict(best_state)            # writes into best_state

    Fix
    ---
    Load the state::

        model.load_state_dict(best_state)

    Known false alarms
    ------------------
    A call of ``state_dict()`` for an effect of an overridden method. Not reported: objects with hooks on
    ``state_dict``, runs of several processes (some wrappers gather the state in every process), variables that are
    returned, passed on, or read anywhere in the file, and those of imported files outside of functions; weights from a
    file for another training, which begins at its first epoch, schedules that are built or stepped to their position,
    and those that go on from the rate that they find, such as ``ExponentialLR``.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    id = "state-not-loaded"
    since = "0.1"
    severity = Severity.ERROR
    account = "state"
    watches = (RunStarted, StateTaken, OptimizerLoaded, StateLoaded, OptimizerStepped, SchedulerStepped)
    needs = (StateTaken,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return states.state_not_loaded(program)

    def __init__(self) -> None:
        super().__init__()
        self._processes = 1
        self._without_weights: dict[int, OptimizerLoaded] = {}
        """Optimizers that loaded their moments; the first values of their weights are not loaded so far."""
        self._judged: set[tuple[type[Event], int]] = set()
        """Optimizers and schedules that have stepped."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case RunStarted():
                self._processes = event.world_size
            case StateTaken():
                self._taken(event, run)
            case OptimizerLoaded(initial=True):
                self._without_weights[event.optimizer] = event
            case StateLoaded():
                for optimizer in list(self._without_weights):
                    if not run.holds.get(optimizer, set()).isdisjoint(event.parameters):
                        del self._without_weights[optimizer]
            case OptimizerStepped() if event.optimizer in self._without_weights:
                self._moments(self._without_weights.pop(event.optimizer), run)
            case OptimizerStepped() if self._first(event, event.optimizer):
                self._resumed(event.optimizer, run)
            case SchedulerStepped() if self._first(event, event.scheduler):
                self._rescheduled(event, run)

    def _first(self, event: Event, number: int) -> bool:
        """Return True at the first step of an optimizer or a schedule."""
        known = (type(event), number) in self._judged
        self._judged.add((type(event), number))
        return not known

    def _taken(self, event: StateTaken, run: Progress) -> None:
        owner = event.owner
        if event.into:
            message = f"the current state of `{owner}` was written over the one in `{event.into}`"
            self._found(event, run, message, event.into)
        elif event.dropped and self._processes == 1:
            self._found(event, run, f"`{owner}.state_dict()` only returns a state, and this line discards it", "state")
        elif event.kept and event.trained and event.kind == "module":
            message = f"trained weights of `{owner}` are kept in `{event.kept}`, and no code reads it"
            self._found(event, run, message, event.kept, Confidence.MEDIUM)

    def _resumed(self, optimizer: int, run: Progress) -> None:
        """Judge the moments of an optimizer at its first step, with weights from a file that has moments too."""
        state, built = run.state, run.optimizers.get(optimizer)
        weights = [p for p in run.holds.get(optimizer, ()) if p in state.weights]
        moved = any(run.schedulers[one].optimizer == optimizer for one in state.schedules if one in run.schedulers)
        resumes = state.file is not None and (state.file.resumes or moved)
        if weights and resumes and state.left()[0] and built is not None and built.remembers:
            name = run.optimizer_name(optimizer)
            self._left(state.weights[weights[0]], name, "the moments of earlier steps", "the weights are loaded", run)

    def _rescheduled(self, event: SchedulerStepped, run: Progress) -> None:
        """Judge the position of a schedule at its first step, after its optimizer loaded the moments in a file."""
        built = run.schedulers.get(event.scheduler)
        loaded = None if built is None else run.state.moments.get(built.optimizer or 0)
        begins = event.optimizer_steps > 0 and not event.epoch_argument and event.scheduler not in run.state.schedules
        if loaded is None or not begins:
            return
        name = run.scheduler_name(event.scheduler)
        if run.state.left()[1]:
            self._left(loaded.site, name, "the steps", f"`{loaded.name}` goes on", run)
        elif event.jump and run.state.file is not None and run.state.file.resumes:
            self._never_saved(loaded, name, event, run)

    def _never_saved(self, loaded: OptimizerLoaded, name: str, event: SchedulerStepped, run: Progress) -> None:
        """Report a schedule that begins again because no file has its position."""
        before, after = event.jump
        self.report(
            loaded.site,
            f"`{name}` begins again: its position was not saved with `{loaded.name}`",
            run=run,
            label=f"`{loaded.name}` goes on",
            related=() if event.site is None else (Mark(event.site, "its first step"),),
            help=f"save `{name}.state_dict()` in the checkpoint as well, and load it",
            cost=f"its first step changes the learning rate from {before:.3g} to {after:.3g}",
            confidence=Confidence.MEDIUM,
            unit="loads",
            key=(loaded.site, name),
        )

    def _left(self, site: Site | None, name: str, what: str, label: str, run: Progress) -> None:
        """Report a state in a file that was not loaded."""
        file = run.state.file
        self.report(
            site,
            f"`{name}` begins again: {what} in the file were not loaded",
            run=run,
            label=label,
            related=(Mark(file.site, "the file has them"),) if file is not None and file.site else (),
            help=f"load the state with `{name}.load_state_dict(...)` as well",
            confidence=Confidence.MEDIUM,
            unit="loads",
            key=(site, name),
        )

    def _moments(self, event: OptimizerLoaded, run: Progress) -> None:
        if run.holds.get(event.optimizer, set()).isdisjoint(run.weights.loaded):
            self.report(
                event.site,
                f"`{event.name}` loaded the moments of earlier steps, and its model no weights",
                run=run,
                label="the weights have their first random values",
                help="load the state of the model as well, with `model.load_state_dict(...)`",
                confidence=Confidence.MEDIUM,
                unit="loads",
            )

    def _found(
        self, event: StateTaken, run: Progress, message: str, kept: str, confidence: Confidence = Confidence.HIGH
    ) -> None:
        self.report(
            event.site,
            message,
            run=run,
            label="nothing is loaded",
            help=f"load the state with `{event.owner}.load_state_dict({kept})`",
            confidence=confidence,
            unit="calls",
        )
