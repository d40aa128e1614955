from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    Event,
    ModelCalled,
    ModelMet,
    OptimizerBuilt,
    OptimizerStepped,
    ParameterMet,
    ParametersUnchanged,
    RunEnded,
    TapeRead,
)
from truestep.findings import Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import parameters
from truestep.syntax import Program, Suspicion

_IDLE = 10
"""A model that is not called for this many steps is not in use."""


class OptimizerHoldsStaleParameters(Rule):
    """An optimizer holds parameters that no model in use contains.

    What it does
    ------------
    Finds optimizers that repeatedly step over parameters that have no gradients and belong to no running model, while a
    running model has similar parameters that no optimizer holds.

    Why it matters
    --------------
    The optimizer holds parameters that were replaced: a head that was swapped, or a model that was rebuilt, copied or
    re-parametrised after the optimizer was created. The new parameters get gradients and never move.

    Example
    -------
    ::

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.fc = nn.Linear(512, 10)       # the optimizer still holds the old layer

    Fix
    ---
    Build the optimizer after the model is complete::

        model.fc = nn.Linear(512, 10)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    Known false alarms
    ------------------
    None known. Not reported: moving a model with ``model.to(device)`` or casting it, which keeps its parameters; copies
    in another precision, meta-learning and shared models with gradients assigned by hand, which have gradients; and a
    model that waits for its turn, unless a model in use replaces it.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#constructing-it
    """

    id = "optimizer-holds-stale-parameters"
    since = "0.1"
    severity = Severity.ERROR
    account = "steps"
    watches = (ModelMet, ModelCalled, TapeRead, OptimizerStepped, ParametersUnchanged)
    needs = (OptimizerStepped, TapeRead, steps(3))
    explains = ("parameters-not-optimized", "parameters-without-effect", "loss-at-chance", "loss-never-changes")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return parameters.optimizer_holds_stale_parameters(program)

    def __init__(self) -> None:
        super().__init__()
        self._models: dict[int, set[int]] = {}
        self._reached: set[int] = set()
        self._empty: dict[int, int] = {}
        self._steps = 0
        self._called: dict[int, int] = {}
        """Model to the number of steps before its latest call; for calls that are only counted, before the last one."""
        self._counted: set[int] = set()
        """Models with calls that were only counted, before the steps that are counted next."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelMet():
                new = set(event.parameters)
                self._reached -= self._models.get(event.model, set()) - new
                self._models[event.model] = new
            case TapeRead():
                self._reached.update(event.reached)
            case ModelCalled() | OptimizerStepped():
                self.again(event, 1)
            case ParametersUnchanged():
                if run.step >= 10:
                    self._judge(run)

    def again(self, event: Event, times: int) -> None:
        if times == 1:
            self._counted.clear()
        match event:
            case ModelCalled():
                self._called[event.model] = self._steps + times - 1
                self._counted.add(event.model)
            case OptimizerStepped():
                self._steps += times
                if times > 1:  # each of the rounds has the calls and the steps of all optimizers
                    self._called |= dict.fromkeys(self._counted, self._steps - 1)
                if event.absent_grad:
                    self._empty[event.optimizer] = self._empty.get(event.optimizer, 0) + times

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how == "finished":
            self._judge(run)

    def _judge(self, run: Progress) -> None:
        known = set(self._drafts)
        models = [m for m in run.models.values() if self._steps - self._called.get(m.model, self._steps) < _IDLE]
        used = {p for model in models for p in model.parameters}
        left = {p for model in run.models.values() if model not in models for p in model.parameters}
        fresh = [
            (model, run.parameters[p])
            for model in models
            for p in model.parameters
            if p in self._reached and p in run.parameters and run.parameters[p].trainable and not run.held_by.get(p)
            if p not in run.weights.moved
        ]
        for number, built in run.optimizers.items():
            if self._empty.get(number, 0) < 3:
                continue
            held = [p for p, holders in run.held_by.items() if number in holders]
            stale = [p for p in held if p not in used and (p not in self._reached or p in left)]
            pairs = [pair for pair in fresh if any(_alike(pair[1], run.parameters.get(p)) for p in stale)]
            if pairs:
                near = [pair for pair in fresh if pair[0] is pairs[0][0]]
                self._found(built, len(stale), len(held), near, run)
                known.discard(number)
        for gone in known:
            self.withdraw(gone)

    def _found(
        self, built: OptimizerBuilt, stale: int, held: int, pairs: list[tuple[ModelMet, ParameterMet]], run: Progress
    ) -> None:
        name, model = run.optimizer_name(built.optimizer), pairs[0][0]
        missing = run.parameter_names(tuple(dict.fromkeys(p.parameter for _, p in pairs)))
        draft = self._drafts.get(built.optimizer) or self.report(
            built.site,
            f"`{name}` holds {stale} parameters that are in no model in use",
            run=run,
            label=f"{stale} of {held} parameters belong to no model that runs",
            related=(Mark(model.site, f"`{run.model_name(model.model)}` has {missing} instead"),),
            help=f"build `{name}` after the last change to `{run.model_name(model.model)}`, from its parameters",
            unit="parameters",
            key=built.optimizer,
        )
        draft.cost = f"they had no gradient in {self._empty[built.optimizer]} steps"
        draft.count, draft.total = stale, held


def _alike(new: ParameterMet, old: ParameterMet | None) -> bool:
    """Return True if one parameter can replace another: same name, same shape, or another number of outputs."""
    if old is None:
        return False
    head = len(new.shape) == len(old.shape) >= 2 and new.shape[1:] == old.shape[1:]
    return head or new.shape == old.shape or bool(new.name and new.name == old.name)
