from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from truestep.events import (
    AverageOfItself,
    Event,
    LayersRepeated,
    ModelAliased,
    ModelCalled,
    OptimizerStepped,
    RatiosRead,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._formulas import program_of, site_of
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import repeated as repeats
from truestep.rules._syntax.models import states
from truestep.syntax import Program, Suspicion, dotted

_LEAST = 3
_ENSEMBLE = frozenset({"ensemble", "estimators", "learners", "members", "snapshots"})
"""Names of collections of different models; others, such as those of agents, can share weights on purpose."""


class ReferenceIsTheModel(Rule):
    """A teacher, target or reference is the trained model itself, under a second name.

    What it does
    ------------
    Looks for a trained model, or a module inside of one, with two names, of which one says that it is another model
    (``teacher``, ``target``, ``reference``, ``ema``). Reports it if the model runs both with and without gradients in
    the steps of the training, as a model and its reference do. Also reports a list, tuple or dict with a name such as
    ``ensemble`` that holds one model in all places, when it is called without gradients and draws nothing at random;
    and one with a name such as ``models``, whose members can share weights on purpose, if two of these calls get the
    same input. Also reports an average of plain tensors that is written in place, as in ``average.lerp_(w, 0.01)``, and
    has the memory of ``w``, or a list or dict of such. Lists that repeat one new model or layer, such as
    ``[make_net()] * 5``, are shown by the syntax, and reported in a run if a container of a trained model holds one
    layer in several places.

    Also reads, at sampled steps, the clipped ratios of new to old probabilities in the loss of PPO. Reports them if all
    are exactly 1 in three updates with samples that have trained other weights before, and differ from 1 in no update:
    the current weights compute the old probabilities too.

    Why it matters
    --------------
    An assignment copies no weights. The model is compared with itself: a penalty on the distance from the reference is
    zero, a consistency is that of two draws of dropout, an average is the model of this moment, and no ratio of PPO is
    clipped. In the proof the model unlearns the language that its reference was to preserve.

    Example
    -------
    ::

        reference = policy                          # a second name of the policy
        with torch.no_grad():
            before = log_probability(reference, batch)
        after = log_probability(policy, batch)

    Fix
    ---
    Copy the model::

        reference = copy.deepcopy(policy).requires_grad_(False)

    Known false alarms
    ------------------
    Self-distillation with the current weights, if the program has two names for the one model. Not reported: second
    names without a role (``net = model``, ``module = ddp.module``), tied layers, models that run without gradients in
    evaluations only, and averages of tensors that each update replaces: ``average = d * average + (1 - d) * w``; ratios
    of states that often return, of samples with equal weights, and of small minibatches that share fewer than three
    samples with each one that was read.

    References
    ----------
    - https://docs.python.org/3/reference/simple_stmts.html#assignment-statements
    - https://docs.python.org/3/library/copy.html
    """

    id = "reference-is-the-model"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (AverageOfItself, LayersRepeated, ModelAliased, ModelCalled, OptimizerStepped, RatiosRead)
    needs = (ModelCalled, OptimizerStepped, steps(_LEAST))
    explains = ("loss-at-chance", "loss-never-changes", "average-never-updated", "no-grad-missing")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        yield from states.reference_is_the_model(program)
        yield from repeats.one_model_repeated(program)

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[int, set[bool]] = {}
        self._compared: Counter[int] = Counter()
        """Steps in a row in which a model was called with and without gradients."""
        self._parts: Counter[tuple[int, str]] = Counter()
        self._shared: dict[int, ModelAliased] = {}
        """Model to a collection that holds it in all places, and may share its weights on purpose."""
        self._repeated: list[LayersRepeated] = []
        self._ratios: dict[Site | None, list[tuple[int, RatiosRead]]] = {}
        """Line to its readings of ratios that are all 1, with their steps; none once they differ from 1."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelCalled():
                self._calls.setdefault(event.model, set()).add(event.grad)
                if event.same_input and not event.grad and event.model in self._shared:
                    self._found_ensemble(self._shared.pop(event.model), run)
            case OptimizerStepped():
                for model, kinds in self._calls.items():
                    if True in kinds:
                        self._compared[model] = self._compared[model] + 1 if False in kinds else 0
                self._calls.clear()
            case ModelAliased():
                self._parts[event.model, event.name] += not event.whole
                self._judge(event, run)
            case AverageOfItself():
                self._found_average(event, run)
            case LayersRepeated():
                self._repeated.append(event)
            case RatiosRead(one=True):
                self._ratios.setdefault(event.site, []).append((run.step, event))
            case RatiosRead():
                self._ratios[event.site] = []

    def ended(self, event: RunEnded, run: Progress) -> None:
        """Judge ratios, and repeated layers by the list that repeats them.

        A layer that is named in each place is shared on purpose.
        """
        for site, reads in self._ratios.items() if not self._drafts else ():  # an old policy that is the new one
            if len(reads) >= _LEAST:
                self._found_ratios(site, reads, run)
        for path in {one.path: None for one in self._repeated} if run.step >= _LEAST else ():
            program = program_of(path)
            if program is None:
                continue
            for found in repeats.one_model_repeated(program):
                site = site_of(path, program.tree, found.node)
                repeated = self._made_by(found, path)
                if repeated is not None:
                    self._found_repeated(repeated, found, site, run)

    def _made_by(self, found: Suspicion, path: str) -> LayersRepeated | None:
        """Return the container with the layer of a list that repeats it."""
        made = found.related[0][0]
        name = dotted(made.func).rpartition(".")[2] if isinstance(made, ast.Call) else ""
        held = [one for one in self._repeated if one.path == path]
        return next((one for one in held if one.kind == name or name[:1].islower()), None)

    def _found_repeated(self, repeated: LayersRepeated, found: Suspicion, site: Site, run: Progress) -> None:
        self.report(
            site,
            f"`{repeated.name or 'the model'}` holds one {repeated.kind} in {repeated.times} places",
            run=run,
            label=found.label,
            help=found.help,
            confidence=Confidence.MEDIUM,
            unit="places",
            key=site,
        ).cost = "all places share their weights"

    def _judge(self, event: ModelAliased, run: Progress) -> None:
        if event.times:
            if _ENSEMBLE.isdisjoint(re.split(r"[\W_\d]+", event.name.lower())):
                self._shared[event.model] = event
            else:
                self._found_ensemble(event, run)
            return
        times = self._compared[event.model] if event.whole else self._parts[event.model, event.name]
        if times < _LEAST:
            return
        model = run.models.get(event.model)
        called = model.site if model is not None else None
        self.report(
            event.site or called,
            f"`{event.name}` is `{event.other}` itself, not a copy",
            run=run,
            label=f"`{event.name}` and `{event.other}` are one model, and all weights are shared",
            related=(Mark(called, "it is called here"),) if called is not None and event.site is not None else (),
            help=f"make `{event.name}` a copy, with `copy.deepcopy`",
            unit="sampled steps",
            key=(event.model, event.name),
        ).cost = "the model is compared with itself"

    def _found_average(self, event: AverageOfItself, run: Progress) -> None:
        several = event.tensors > 1
        self.report(
            event.site,
            f"`{event.name}` is `{event.other}` itself, not a copy",
            run=run,
            label=f"has the memory of the tensor{'s' * several} in `{event.other}`",
            related=(Mark(event.updated, "mixes it with itself"),) if event.updated is not None else (),
            help=f"begin with a copy of each tensor in `{event.other}`, `w.detach().clone()`",
            unit="averages",
        ).cost = f"the average is `{event.other}` of this moment"

    def _found_ratios(self, site: Site | None, reads: list[tuple[int, RatiosRead]], run: Progress) -> None:
        (first, event), through = reads[0], Mark(site, "the backward pass with these ratios") if site else None
        draft = self.report(
            event.made or site,
            "the ratios of new to old probabilities are all 1, after updates with the same samples",
            run=run,
            label=f"`{event.name}` compares the policy with itself"
            if event.name
            else "compares the policy with itself",
            related=(through,) if event.made and through else (),
            help="keep the log-probabilities of the actions from when they were chosen, before the first update",
            confidence=Confidence.MEDIUM,
            unit="updates read",
            key=site,
        )
        draft.cost, draft.count, draft.first_step = "the clip never acts: no update is bounded", len(reads), first

    def _found_ensemble(self, event: ModelAliased, run: Progress) -> None:
        self.report(
            event.site,
            f"`{event.name}` holds one model {event.times} times",
            run=run,
            label="all members are the same model, and share their weights",
            help="build a new model for each member, or append a copy, with `copy.deepcopy`",
            unit="evaluations",
            key=(event.model, event.name),
        ).cost = "the mean over the members is the result of one model"
