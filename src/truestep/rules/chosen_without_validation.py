"""Evidence from the samples of evaluations, and from the parts of the data that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from truestep.accounts.samples import CLEAN, TRAINED
from truestep.events import (
    BatchDrawn,
    ChoiceRead,
    EvaluationRan,
    Event,
    FunctionCalled,
    HandStepped,
    LoaderUnread,
    ModelCalled,
    NumberChosen,
    OptimizerStepped,
    PartUnused,
    RunEnded,
    Site,
    StateLoaded,
    WeightsKept,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, Condition
from truestep.rules._formulas import scope_around
from truestep.rules._loader_names import is_for_choice, is_trained_on
from truestep.rules._rule import Draft, Progress, Rule
from truestep.source import parsed
from truestep.syntax import Program, Suspicion, WeightsByTest, chosen_by_test, weights_by_test

_LEAST_KEPT = 2
"""Weights that are kept once may be those of a fixed step."""
_HELP = "choose `{}` by the validation samples"
_BY_TEST = "the best weights are chosen by `{}`, and their figure on the same samples is the result"
_SPLIT = "split validation samples from the training, and choose the weights by them"
_COST = "the figure is the best of many on these samples, and not that on new ones"
_STEPPED = Condition("no optimizer step", lambda run: not run.met.isdisjoint((OptimizerStepped, HandStepped)))
_EVALUATED = Condition(
    "no evaluation on rows or loaders that differ",
    lambda run: bool(run.samples.evaluated or run.samples.evaluations),
)


@dataclass(slots=True)
class _Choice:
    """A branch for a new best figure."""

    times: int = 0
    unknown: bool = False
    """True if weights were kept after an evaluation on samples that are unknown."""
    of_loaders: bool = True
    """True if all evaluations before were on batches of loaders."""
    samples: dict[str, bool] = field(default_factory=dict)
    """Name of the samples that were evaluated before, to whether they were trained on."""


class ChosenWithoutValidation(Rule):
    """The best weights are chosen by samples of the test or of the training, a threshold by those of the test.

    What it does
    ------------
    Follows the weights that are kept in a branch for a new best figure, the samples of the evaluation before, and the
    parts of the data that nothing reads: arrays, indices and attributes that no statement reads, and DataLoaders that
    are built and never read. Reports weights that were kept at least twice, if a part with a name such as ``val`` or
    ``dev`` is never read, and all these evaluations were on other samples: all of them trained on, or hardly any.

    Also reads, after each evaluation, the best value so far of a branch that keeps weights, and the variables that are
    called a loss of the training or of a validation. Reports a best value that is, after each of three or more
    evaluations, the least loss of the training, and never that of the validation beside it. The same is reported for a
    branch that compares a figure with the name of the training or the test, such as ``train_loss < best_loss``, and
    keeps weights at least twice, if a loss of a validation with another value is beside it: for accuracies likewise.
    Not reported if the best value has that name, too, if another branch keeps weights, if weights are loaded again
    where the figure is worse than the best one, and for training samples that are drawn for each step.

    Without a part for choices, or with one that the training and the code behind it never read, reports weights that
    are kept by a figure of samples with the name of the test, loaded again after the loop, and evaluated by the same
    call on the same samples: the last figure is the best of many. Without modules, the call gets the copies that were
    kept, and nothing else does. The same is reported for models of a loop over settings, of which one is kept whole.

    Also reports a number that is chosen by scores and labels of the test, in a program with a validation part, if a
    figure of the same samples is computed with it: a threshold, a temperature, the parameters of a calibration, the
    weight of an ensemble. Known are functions with the name of such a choice, such as ``best_threshold``, the best
    place of a curve, loops over candidates, ``max``, ``argmax`` and minimisers over candidates, and ``fit`` of
    calibrators. The best of figures of the test counts too, which a loop or a comprehension collects over settings, if
    a new figure of the test is computed with this setting. The syntax shows it, and in a run the function must have
    called a model in an evaluation.

    Why it matters
    --------------
    The figure of the chosen weights is the largest of many, and part of it is chance: that of test samples is reported
    and does not hold on new ones, and that of training samples chooses the weights that have memorised most. In the
    proof, the accuracy on 100 test samples is 10 points above that on fresh samples.

    Example
    -------
    ::

        train, valid, test = order.split([800, 100, 100])
        ...
        accuracy = evaluate(model, x[test], y[test])        # meant: valid
        if accuracy > best_accuracy:
            best_accuracy = accuracy
            torch.save(model.state_dict(), "best.pt")

    Fix
    ---
    Choose the weights by the validation samples, and read the test samples once, at the end::

        accuracy = evaluate(model, x[valid], y[valid])

    Known false alarms
    ------------------
    A program that sets a validation part aside for another program. Not reported: programs with two parts only that do
    not evaluate the chosen weights again, or evaluate them on other samples as well, or call the figure an upper bound,
    a part for choices that the evaluation reads in another form, parts in a dict, and a choice by
    the loss of the training in a program without one of a validation; tables of settings of which the best one is
    only named. Of thresholds and the like: those that the
    program calls an oracle, an upper bound or the like, those that the same function also chooses by other samples,
    figures of another part of the test, choices in functions that get one part only, thresholds at a given level such
    as a recall of 0.95 or at equal error rates, the worst of groups, and scales and offsets.

    References
    ----------
    - https://scikit-learn.org/stable/modules/cross_validation.html
    """

    id = "chosen-without-validation"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (
        WeightsKept, ChoiceRead, NumberChosen, PartUnused, LoaderUnread, ModelCalled, BatchDrawn, OptimizerStepped,
        StateLoaded, FunctionCalled, HandStepped, EvaluationRan,
    )  # fmt: skip
    needs = (WeightsKept, _STEPPED, _EVALUATED, FINISHED)
    asks = "weights are chosen by validation samples"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        for one in chosen_by_test(program.tree):
            yield Suspicion(
                one.node,
                f"`{one.name}` is chosen by samples of the test, and a figure of them is computed with it",
                f"chosen by `{one.by}`",
                _HELP.format(one.name),
                ((one.figure, "the figure"),),
                Confidence.MEDIUM,
            )

        for chosen in weights_by_test(program.tree):
            yield Suspicion(
                chosen.branch,
                _BY_TEST.format(chosen.by),
                f"`{chosen.name}` is the figure of a test",
                _SPLIT,
                ((chosen.figure, "the chosen weights, on the same samples"),),
                Confidence.MEDIUM,
            )

    def __init__(self) -> None:
        super().__init__()
        self._choices: dict[Site | None, _Choice] = {}
        self._by_training: list[ChoiceRead] = []
        self._named: dict[Site | None, WeightsKept] = {}
        """Branches that compare a figure with the name of the training, beside one of a validation."""
        self._numbers: list[NumberChosen] = []
        self._ran: set[tuple[str, int]] = set()
        """Files and first lines of functions that an evaluation was called in."""
        self._unused: dict[str, Site | None] = {}
        self._unread: dict[str, Site | None] = {}
        """Loaders; their samples may be evaluated as a tensor."""
        self._loaders: set[int] = set()
        """Loaders with a batch that a model was called on without gradients, since the latest step."""
        self._loaded = -1
        """Number of steps before the latest load of weights."""
        self._apart = False
        """True if a model was called on other tensors since."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ChoiceRead():
                self._by_training.append(event)
            case NumberChosen():
                self._numbers.append(event)
            case StateLoaded():
                self._loaded = run.step
            case EvaluationRan():
                self._ran.add((event.path, event.first))
            case WeightsKept():
                if event.beside and (run.samples.evaluated or run.samples.evaluations):
                    self._named[event.site] = event
                self._keep(self._choices.setdefault(event.site, _Choice()), run)
            case ModelCalled(tracked=False, loader=int(loader)):
                self._loaders.add(loader)
            case ModelCalled(tracked=False) | FunctionCalled(tracked=False):
                self._apart = True
            case OptimizerStepped() | HandStepped():
                self._loaders.clear()
                self._apart = False
            case PartUnused() if is_for_choice(event.name):
                self._unused.setdefault(event.name, event.site)
            case LoaderUnread() if is_for_choice(event.name):
                self._unread.setdefault(event.name, event.site)

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, WeightsKept) and event.site in self._choices:
            self._choices[event.site].times += times

    def _keep(self, choice: _Choice, run: Progress) -> None:
        choice.times += 1
        choice.of_loaders = choice.of_loaders and not self._apart
        before = {run.loader_name(one): one in run.samples.trained for one in self._loaders}
        for one in run.samples.latest if self._apart else ():
            if not one.last.table or not one.last.seen or CLEAN <= one.share < TRAINED:
                choice.unknown = True
            before[one.last.table] = one.share >= TRAINED
        choice.unknown = choice.unknown or not before
        choice.samples |= before

    def ended(self, event: RunEnded, run: Progress) -> None:
        memorised = event.how in ("finished", "exited") and run.samples.repeats > 1  # not of samples drawn each time
        for read in self._by_training if memorised else ():
            self.report(
                read.site,
                f"the best weights are chosen by `{read.by}`, and `{read.beside}` is not compared",
                run=run,
                label=f"after each of {read.evaluations} evaluations, `{read.name}` is the least `{read.by}` so far",
                help=f"compare `{read.beside}` with the best one",
                cost="the weights that have memorised most are kept",
                unit="choices",
            )
        if event.how in ("finished", "exited") and not self._drafts:
            self._by_name(run, memorised=memorised)
        for chosen in self._numbers if event.how == "finished" else ():
            self.report(
                chosen.site,
                f"`{chosen.name}` is chosen by samples of the test, and a figure of them is computed with it",
                run=run,
                label=f"chosen by `{chosen.by}`",
                related=(Mark(chosen.figure, "the figure"),) if chosen.figure else (),
                help=_HELP.format(chosen.name),
                cost=_COST,
                unit="choices",
            )
        kept = [(site, one) for site, one in self._choices.items() if one.times >= _LEAST_KEPT]
        if event.how == "finished" and not self._drafts:
            self._by_test(kept, run)
            self._by_setting(run)
        if event.how != "finished" or len(kept) != 1:
            return
        ((site, choice),) = kept
        unused = self._unused | (self._unread if choice.of_loaders else {})
        trained = set(choice.samples.values())
        if not unused or choice.unknown or len(trained) != 1 or any(map(is_for_choice, choice.samples)):
            return
        name, of_training = next(iter(choice.samples.items()))
        part, made = next(iter(unused.items()))
        whose = "that the model is trained on" if of_training else f"of `{name}`"
        draft = self.report(
            site,
            f"the best weights are chosen by samples {whose}, and `{part}` is never read",
            run=run,
            label="chooses the weights",
            related=(Mark(made, f"makes `{part}`"),) if made else (),
            help=f"choose the weights by an evaluation on `{part}`",
            cost="the weights that have memorised most are kept"
            if of_training
            else "the figure of the chosen weights is the best of many, and not that on new samples",
            unit="kept states",
        )
        draft.count, draft.first_step = choice.times, None

    def _by_test(self, kept: list[tuple[Site | None, _Choice]], run: Progress) -> None:
        """Report weights that were chosen by the test and evaluated on the same samples at the end."""
        for site, choice in kept:
            chosen = None if site is None else _at(site)
            if site is None or chosen is None or not (self._apart if chosen.given else self._loaded == run.step):
                continue
            self._chosen(site, chosen, run, "kept states").count = choice.times

    def _by_setting(self, run: Progress) -> None:
        """Report models of which the best one is chosen by the test, in functions that ran an evaluation."""
        for path in sorted({path for path, _ in self._ran}):
            tree = parsed(path)
            if tree is None:
                continue
            for one in weights_by_test(tree):
                around = scope_around(tree, one.figure)
                if one.whole and (path, around) in self._ran:
                    branch = one.branch
                    ended = (branch.end_lineno or -1, branch.end_col_offset or -1)
                    self._chosen(Site(path, branch.lineno, branch.col_offset, *ended), one, run, "choices")

    def _chosen(self, site: Site, chosen: WeightsByTest, run: Progress, unit: str) -> Draft:
        figure = chosen.figure
        ended = (figure.end_lineno or -1, figure.end_col_offset or -1)
        again = Site(site.path, figure.lineno, figure.col_offset, *ended)
        draft = self.report(
            site,
            _BY_TEST.format(chosen.by),
            run=run,
            label=f"`{chosen.name}` is the figure of a test",
            related=(Mark(again, "the chosen weights, on the same samples"),),
            help=_SPLIT,
            cost=_COST,
            unit=unit,
        )
        draft.first_step = None
        return draft

    def _by_name(self, run: Progress, *, memorised: bool) -> None:
        """Report a branch that compares a figure of the training or the test by name, if no other one keeps weights."""
        if self._choices.keys() != self._named.keys():
            return
        for site, kept in self._named.items():
            of_training = is_trained_on(kept.name)
            if self._choices[site].times >= _LEAST_KEPT and (memorised or not of_training):
                draft = self.report(
                    site,
                    f"the best weights are chosen by `{kept.name}`, and `{kept.beside}` is not compared",
                    run=run,
                    label=f"`{kept.best}` becomes `{kept.name}`",
                    help=f"compare `{kept.beside}` with the best one",
                    cost="the weights that have memorised most are kept" if of_training else _COST,
                    unit="kept states",
                )
                draft.count, draft.first_step = self._choices[site].times, None


def _at(site: Site) -> WeightsByTest | None:
    """Return the choice of weights by the test with its branch at a line."""
    tree = parsed(site.path)
    return next(
        (one for one in ([] if tree is None else weights_by_test(tree)) if one.branch.lineno == site.line), None
    )
