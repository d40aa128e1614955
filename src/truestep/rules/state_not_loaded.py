from __future__ import annotations

from truestep.events import Event, OptimizerLoaded, OptimizerStepped, RunStarted, StateLoaded, StateTaken
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule


class StateNotLoaded(Rule):
    """A state is read, or kept, where it was to be loaded: nothing is restored.

    What it does
    ------------
    Follows the calls of ``state_dict()`` of modules, optimizers and schedules. Reports

    - a call with a result that the line discards;
    - a call that fills a dict with a kept state: the current weights replace the kept ones;
    - a copy of trained weights in a variable that no code reads, other than to compare it with None;
    - an optimizer that loads its moments and steps, while the weights that it holds have their first random values.

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
    returned, passed on, or read anywhere in the file, and those of imported files outside of functions.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict
    - https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    id = "state-not-loaded"
    since = "0.1"
    severity = Severity.ERROR
    account = "state"
    watches = (RunStarted, StateTaken, OptimizerLoaded, StateLoaded, OptimizerStepped)
    needs = (StateTaken,)

    def __init__(self) -> None:
        super().__init__()
        self._processes = 1
        self._without_weights: dict[int, OptimizerLoaded] = {}
        """Optimizers that loaded their moments; the first values of their weights are not loaded so far."""

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
            case _:
                pass

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
