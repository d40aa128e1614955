from __future__ import annotations

import re
from collections.abc import Iterator

from truestep.events import CopyUnchanged, Event, ModelMet, ParametersUnchanged
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import states
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 50
"""By its name alone, a model is reported after so many steps: some target networks are copied rarely."""


class AverageNeverUpdated(Rule):
    """An average of the weights, or a target network, keeps its first values while another model is trained.

    What it does
    ------------
    Looks at sampled steps for models that are called, that no optimizer holds and that have kept their values, while a
    trained model with the same shapes has changed. Reports one if the program has a loop over pairs of parameters that
    changes nothing, if it is torch's ``AveragedModel``, or if it is named as an average (``ema``, ``swa``, ``slow``,
    ``momentum``), or as a target and began as a copy of the trained model; also a copy of the trained model that is
    written to, in each update, with its own values: an average of itself. It must be called after steps that it did not
    follow, and its values be the first ones. The syntax shows an object of a class of the file with a method that
    updates the average and is never called.

    Why it matters
    --------------
    The average stays at its first values: evaluated or saved, it is an untrained model; as a target or a teacher, it
    pulls the trained model back to random outputs. An assignment to the variable of a loop binds a name, and writes no
    tensor.

    Example
    -------
    ::

        for average, weight in zip(ema.parameters(), model.parameters()):
            average = decay * average + (1 - decay) * weight        # binds the name `average`

    Fix
    ---
    Write to the tensor, without gradients::

        with torch.no_grad():
            for average, weight in zip(ema.parameters(), model.parameters()):
                average.lerp_(weight, 1 - decay)

    Known false alarms
    ------------------
    A target network that is first copied after the end of the run. Not reported: references and teachers that stay on
    purpose (preference optimisation, distillation), random targets that were not copied, copies that are called before
    the training only, and averages that were updated before their first call, as in an earlier stage.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
    - https://docs.python.org/3/reference/simple_stmts.html#assignment-statements
    """

    id = "average-never-updated"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (CopyUnchanged, ParametersUnchanged)
    needs = (ModelMet, ParametersUnchanged)
    explains = ("result-never-read",)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return states.average_never_updated(program)

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[object, tuple[int, ...]] = {}

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case CopyUnchanged():
                self._judge(event, run)
            case ParametersUnchanged():
                for key in list(self._drafts):
                    if not run.weights.moved.isdisjoint(self._copies[key]):
                        self.withdraw(key)

    def _judge(self, event: CopyUnchanged, run: Progress) -> None:
        model, trained = run.models.get(event.model), run.models.get(event.source)
        if model is None or trained is None:
            return
        called = f"{model.name}.{event.path}" if event.path else model.name
        name = next((name for name in (*event.names, called) if _names_average(name, equal=event.equal)), "")
        key = event.model, event.path
        if event.moved:
            self.withdraw(key)
        if event.moved or not event.used or not (event.first or event.loop):
            return
        sure, part = bool(event.loop or event.average), event.initial and event.inside
        itself = event.written and event.equal
        if not (sure or (event.steps >= _LEAST_STEPS and (name or part or itself))):
            return
        name = name or next(iter(event.names), called)
        source = run.model_name(event.source) + (f".{event.source_path}" if event.source_path else "")
        idle = Mark(event.loop, "changes no tensor: an assignment binds a name") if event.loop else None
        ran = next((run.weights.ran[p] for p in event.parameters if p in run.weights.ran), None)
        site = ran.outer if ran is not None and event.path else model.site
        self._copies[key] = event.parameters
        draft = self.report(
            event.loop or site,
            f"`{name}` keeps its first values while `{source}` is trained",
            run=run,
            label=idle.label if idle else f"`{name}` is called here",
            related=(Mark(site, f"`{name}` is called here"),) if idle and site else (),
            help=f"write to the parameters of `{name}`, with `lerp_` or `copy_`, after each step",
            confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
            key=key,
        )
        draft.count = draft.total = event.steps
        draft.first_step = None
        draft.cost = f"its {len(event.parameters)} parameters have not moved in {event.steps} steps"


def _names_average(name: str, *, equal: bool) -> bool:
    """Return True if a name says that a model follows another one.

    >>> _names_average("self.ema_model", equal=False), _names_average("q_target", equal=True)
    (True, True)
    >>> _names_average("teacher", equal=True), _names_average("target", equal=False)
    (False, False)
    """
    words = set(re.split(r"[\W_\d]+", name.lower()))
    return bool(words & {"ema", "swa", "avg", "average", "averaged", "polyak", "shadow", "slow", "momentum"}) or (
        equal and "target" in words
    )
