"""Evidence from the whole run: the only evaluation draws a part of its samples from those of the training."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.accounts.samples import CLEAN
from truestep.events import (
    CheckSkipped,
    CopiesEvaluated,
    Event,
    FoldContinued,
    LoaderStarted,
    ModelCalled,
    OptimizerStepped,
    RowsEvaluated,
    RowsUnread,
    RunEnded,
    SamplesShared,
    SelectionsShared,
    Site,
    WindowsShared,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, Condition
from truestep.rules._loader_names import is_held_out
from truestep.rules._rule import Progress, Rule
from truestep.rules._shared_rows import (
    LEAST_CLEAN,
    LEAST_SAMPLES,
    LEAST_WHOLE,
    LEAST_WHOLE_SHARE,
    are_made_of_others,
    continued,
    has_copies,
    is_clean,
    is_continued,
    is_loaded_again,
    is_mixed,
    is_shared,
    is_table_again,
    is_the_training,
    is_trained_on,
    is_trained_on_by_name,
    leaks,
)
from truestep.rules._syntax.data import splits
from truestep.syntax import Program, Suspicion

_NOWHERE = Site("", 0)
_COMPARED = Condition(
    SamplesShared.absent,
    lambda run: bool(run.samples.compared) or any(one.last.seen for one in run.samples.evaluations.values()),
)


class TrainValidationOverlap(Rule):
    """The model is evaluated on many samples that it was trained on.

    What it does
    ------------
    Compares the samples drawn by the loader of an evaluation with those of the training loaders: by index if both read
    one data set, or two with equal samples, otherwise by value. Reports an evaluation if at least a tenth of its
    samples were trained on (a fifth if compared by value, as copies are that were made before the split), some were
    not, and some training samples are not in it: two splits that should be one. Also reports an evaluation if all of
    its samples were trained on, some training samples are not in it, and its loader is called ``val``, ``test`` or the
    like; an evaluation on exactly the training samples, if its loader has such a name, and another evaluation is on
    other samples or its data set is another object than that of the training, with equal samples; and evaluations on
    the loaders of the training only, if a loader with such a name is built and never read.

    Reports folds of a cross-validation that go on with the weights of the fold before: a new optimizer gets the weights
    that were evaluated last, and later evaluations are on samples that earlier optimizers have trained these weights
    on, while the first one was on others; or a loop over the folds of scikit-learn, such as ``KFold(5).split(x)``,
    builds an optimizer over weights that it has trained before.

    Without loaders, looks up the rows of an evaluation among those of sampled training steps, in the tables that
    variables of the program hold, also as windows of a sequence. If many rows of the table of the training are equal,
    as in a class that was repeated before the split, compares rows of four or more columns of measured numbers by
    value, and reports an evaluation if at least a twentieth of them were trained on; of any numbers, if a table of
    different rows has them all: they are rows that were drawn several times. Also reports an evaluation on
    training rows only, if nothing reads the other part of a split, or if its table is called ``x_test`` or the like;
    such a table may have all rows of the training, as features that are computed from the same rows twice.

    Reports an evaluation if one of its classes was filled up before the split: at least three fifths of its rows are
    copies, with noise, of many rows of the training, and it has about as many rows as another class, or at least two
    fifths lie on a line with two rows of the training, as synthetic rows between neighbours do; and of another class
    hardly any. Compares rows of four or more columns of measured numbers, with a column of classes beside them.

    Of windows of a series, with the next steps as targets, reports an evaluation if half of its windows go on in a
    window of the training, one step later: this window has the target, after the same steps.

    In the first backward pass of each line, compares the masks and the indices that variables, attributes, dicts and
    tuples hold under names such as ``val_mask`` and ``test_idx``. Reports a test with at least a tenth of its rows, but
    not all of them, from a validation by which a branch of the program keeps its best figure; and, in programs without
    modules, a validation or a test with a part of its rows from the training.

    Why it matters
    --------------
    The model has memorised the answers. The proof splits one data set twice: the accuracy on the validation samples is
    25 points higher than on fresh samples, and of two models the one that memorised more is selected.

    Example
    -------
    ::

        train, _ = random_split(augmented, [0.8, 0.2])
        _, val = random_split(plain, [0.8, 0.2])        # another split: four fifths of `val` are in `train`

    Fix
    ---
    Split once, and use the same indices for both::

        order = torch.randperm(len(plain)).tolist()
        train, val = Subset(augmented, order[:800]), Subset(plain, order[800:])

    Known false alarms
    ------------------
    A run with a single evaluation, on a mixture of training samples and others, on purpose. Not reported: accuracy on
    training samples, an evaluation of all samples, calls in most steps (teachers, target networks), folds and splits
    with a new model each, folds that begin with the same weights, folds of which only one part is read, splits in the
    order of time, windows beside an evaluation on later ones, samples that repeat naturally, copies in all classes or
    of a few rows, and every run with another evaluation on samples that could not be compared, or that were never
    trained on, unless the loader or the table is called ``test`` or the like. Of masks and indices, not reported:
    equal ones, those of all rows, a part that is within the training or has all of it, selections that are not used
    with the same variables and arguments, two stretches from the first row, stretches of rows in common as before
    the first window of a series, a validation that is taken out of the test later or under another name, indices
    that do not select from the same variable, and names that tell more, such as ``test_users``.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.random_split
    - https://scikit-learn.org/stable/common_pitfalls.html#data-leakage
    """

    id = "train-validation-overlap"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (
        SamplesShared, CheckSkipped, FoldContinued, ModelCalled, LoaderStarted, OptimizerStepped, RowsEvaluated,
        RowsUnread, SelectionsShared, WindowsShared, CopiesEvaluated,
    )  # fmt: skip
    needs = (_COMPARED, FINISHED)
    asks = "evaluation data are not trained on"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return splits.train_validation_overlap(program)

    def __init__(self) -> None:
        super().__init__()
        self._compared: dict[int, SamplesShared] = {}
        """Loader of an evaluation to its latest comparison."""
        self._leaking: dict[int, SamplesShared] = {}
        self._folds: dict[Site, list[SamplesShared]] = {}
        """Line that creates loaders to the first comparison of each of them."""
        self._trained: set[int] = set()
        self._called: set[int | None] = set()
        """Loaders with batches that a model was called on without a backward; None: batches without a loader."""
        self._started: dict[int, Site | None] = {}
        self._stepped = False
        self._skipped = ""
        self._selections: list[SelectionsShared] = []
        self._windows: list[WindowsShared] = []
        self._modules = False
        """True once a model was called: rows of its training are known from its arguments and results."""
        self._continued: list[FoldContinued] = []
        """Folds that go on with the weights of an earlier one."""
        self._copies: dict[tuple[Site | None, str], RowsEvaluated] = {}
        """Line and table to its latest evaluation on rows that are equal to some of the training."""
        self._filled: dict[Site | None, CopiesEvaluated] = {}
        """Line to its first evaluation on rows that were made out of rows of the training."""

    def unobserved(self, run: Progress) -> str:
        if not _COMPARED.holds(run) and self._skipped:
            return self._skipped
        samples = run.samples
        trained = [site for site, one in samples.evaluations.items() if is_trained_on(one)]
        meant = any(samples.is_seldom(site) for site in (*trained, *samples.once_trained))
        return super().unobserved(run) or ("an evaluation on training samples, which can be meant" if meant else "")

    def suspected(self) -> bool:
        return super().suspected() or bool(self._leaking)

    def observe(self, event: Event, run: Progress) -> None:
        self._modules = self._modules or isinstance(event, ModelCalled)
        match event:
            case SelectionsShared():
                self._selections.append(event)
            case WindowsShared():
                self._windows.append(event)
            case SamplesShared():
                if event.loader not in self._compared and (made := _made(event.loader, run)) is not None:
                    self._folds.setdefault(made, []).append(event)
                self._compared[event.loader] = event
                self._trained |= set(event.trained)
                if leaks(event) or is_trained_on_by_name(event, run):
                    self._leaking.setdefault(event.loader, event)
            case ModelCalled() if self._stepped and (not event.tracked or event.loader is not None):
                self._called.add(event.loader)
            case LoaderStarted() if event.loader not in self._called:
                self._started[event.loader] = event.site  # the one before may be a look at a batch
            case RowsEvaluated(copies=True) if is_held_out(event.table):
                self._copies[event.site, event.table] = event
            case CopiesEvaluated() if are_made_of_others(event):
                self._filled.setdefault(event.site, event)
            case FoldContinued():
                self._continued.append(event)
            case CheckSkipped(check="overlap"):
                self._skipped = event.reason
            case OptimizerStepped():
                self._stepped = True

    def ended(self, event: RunEnded, run: Progress) -> None:
        known = self._compared.keys() | self._trained
        clean = any(is_clean(compared) for compared in self._compared.values())
        made = {_made(loader, run) for loader in self._leaking.keys() | self._trained} - {None}
        others = {loader for loader in self._called - known if loader is None or _made(loader, run) not in made}
        if event.how == "finished":
            self._judge_folds(run)
        if event.how != "finished":
            return
        for both in self._selections:
            if is_shared(both) and not (self._modules and both.parts[0] == "train"):
                self._selected(both, run)
        for one in self._copies.values():
            if has_copies(one) and run.samples.is_seldom(one.site):
                self._copied(one, run)
        for filled in self._filled.values():
            self._made_of_others(filled, run)
        for loader, shared in self._leaking.items():
            turning = any(is_clean(one) for one in self._folds.get(_made(loader, run) or _NOWHERE, ()))
            held_out = is_trained_on_by_name(shared, run) or (leaks(shared) and is_held_out(run.loader_name(loader)))
            named = held_out and not turning  # an evaluation on other samples does not mend this one
            if loader not in self._trained and (named or not (clean or others)):
                self._found(loader, shared, run)
        for loader, shared in self._compared.items() if not others else ():
            same = is_the_training(shared, run) and loader not in self._trained | self._leaking.keys()
            if same and (clean or is_loaded_again(shared, run)):
                self._found(loader, shared, run)
        for window in self._windows if not (self._drafts or event.given_up) else ():
            if is_continued(window, self._windows) and run.samples.is_seldom(window.site):
                self.report(run=run, **continued(window, run))
        if clean:
            return
        if not self._drafts:
            self._judge_rows(run)
        if not self._drafts:
            self._judge_unread(run)

    def _judge_folds(self, run: Progress) -> None:
        """Report loaders of one line with samples that the weights were trained on in an earlier fold."""
        for made, folds in self._folds.items():
            first, *later = folds
            stale = [one for one in later if is_clean(one) and one.earlier >= LEAST_WHOLE_SHARE * one.samples]
            if not stale or first.earlier or not is_clean(first) or stale[-1].samples < LEAST_SAMPLES:
                continue
            built = [one.site for one in run.optimizers.values() if one.site is not None]
            draft = self.report(
                built[-1] if built else made,
                f"folds go on with the weights of the fold before: `{run.model_name(first.model)}` is not built again",
                run=run,
                label="a new optimizer, of weights that were evaluated before",
                related=(Mark(stale[-1].site, "evaluated on samples of earlier folds"),),
                cost=f"{stale[-1].earlier} of the {stale[-1].samples} samples of the last fold were trained on",
                help="build a new model in each fold",
                confidence=Confidence.MEDIUM,
                unit="folds",
                key=made,
            )
            draft.count = len(stale)
        evaluated = any(kind == "evaluations" for kind, _ in run.samples.tally)
        if self._continued and evaluated and not self._drafts:
            self._judge_continued(run)

    def _judge_continued(self, run: Progress) -> None:
        """Report folds with the weights of the fold before, of which no loader shows the samples."""
        last = self._continued[-1]
        built = run.optimizers.get(last.optimizer)
        draft = self.report(
            built.site if built is not None and built.site is not None else last.site,
            "folds go on with the weights of the fold before: the model is not built again",
            run=run,
            label="a new optimizer, of weights that the fold before has trained",
            cost="the samples that a fold holds out were trained on in earlier folds",
            help="build a new model in each fold",
            confidence=Confidence.MEDIUM,
            unit="folds",
            key=last.site,
        )
        draft.count = len(self._continued)

    def _judge_unread(self, run: Progress) -> None:
        """Report an evaluation on the loader of the training, in a program with a loader of other samples, not read."""
        samples = run.samples
        unread = next((one for one in samples.unread if is_held_out(one.name)), None)
        if unread is None or None in self._called or not samples.evaluated.keys() <= samples.trained.keys():
            return
        for loader, site in samples.evaluated.items():
            name = run.loader_name(loader)
            self.report(
                site,
                f"the model is evaluated on `{name}`, which it is trained on, and `{unread.name}` is never read",
                run=run,
                label="evaluated on training samples",
                related=() if unread.site is None else (Mark(unread.site, "built and never read"),),
                cost="the evaluation measures memorised samples",
                help=f"evaluate on `{unread.name}`",
                confidence=Confidence.MEDIUM,
                unit="evaluations",
                key=("unread", loader),
            )

    def _judge_rows(self, run: Progress) -> None:
        """Report evaluations on rows of tables that variables hold."""
        evaluations = run.samples.evaluations
        clean = max((one.samples for one in evaluations.values() if one.share < CLEAN), default=0)
        for site, one in evaluations.items():
            held_out = one.last.own and is_held_out(one.last.table)
            again = is_table_again(one)
            sure = again or (held_out and is_mixed(one))
            if clean >= max(LEAST_SAMPLES, LEAST_CLEAN * one.samples) and not sure:
                continue
            if site in run.samples.once_clean or not run.samples.is_seldom(site):
                continue
            unread = [left.table for left in run.samples.rows_unread if left.unused or one.last.own or one.last.windows]
            named = held_out and one.last.rows > one.samples
            whole = is_trained_on(one) and (bool(unread) or named or again) and one.samples > LEAST_WHOLE
            if not (whole or is_mixed(one)):
                continue
            last = one.last
            name, shared = last.table, one.samples if whole else round(one.share * one.samples)
            cost = f"of these rows, {one.hits:,} were in the batches of the steps that were read"
            self.report(
                last.made or site,
                f"{shared:,} of the {one.samples:,} samples of `{name}` were trained on",
                run=run,
                label="evaluated on training samples",
                related=(Mark(site, "the evaluation"),) if last.made else (),
                cost=f"{cost}; nothing reads the other rows of `{unread[0]}`" if whole and unread else cost,
                help="split the data once, and use the two parts of that split for training and evaluation",
                confidence=Confidence.MEDIUM,
                unit="evaluations",
                key=site,
            )

    def _selected(self, both: SelectionsShared, run: Progress) -> None:
        """Report two parts of the data with rows in common."""
        trained = both.parts[0] == "train"
        use = "are trained on" if trained else "choose the weights"
        draft = self.report(
            both.site,
            f"{both.shared:,} of the {both.rows[1]:,} rows of `{both.other}` are in `{both.one}`, too",
            run=run,
            label=f"selects rows of `{both.one}`",
            related=() if both.made is None else (Mark(both.made, f"`{both.one}`"),),
            cost=f"rows that {use} are evaluated as rows that the model has never met",
            help=f"leave the rows of `{both.one}` out of `{both.other}`",
            confidence=Confidence.MEDIUM,
            unit="parts",
            key=("selections", both.one, both.other),
        )
        draft.first_step = None

    def _copied(self, one: RowsEvaluated, run: Progress) -> None:
        """Report an evaluation on rows that are equal to some of the training, which has rows several times."""
        self.report(
            one.site,
            f"{one.hits:,} of the {one.samples:,} samples of `{one.table}` are equal to samples that were trained on",
            run=run,
            label="evaluated on copies of training samples",
            cost="equal rows are in both parts of the data, and the evaluation measures memory",
            help="remove repeated rows before the split, and repeat rows in the training part only",
            confidence=Confidence.MEDIUM,
            unit="evaluations",
            key=(one.site, one.table),
        )

    def _made_of_others(self, one: CopiesEvaluated, run: Progress) -> None:
        """Report an evaluation on rows of a class that was filled up before the split."""
        how = "lie between two samples" if one.between else "are copies, with noise, of samples"
        share, table = one.hits / one.compared, f"`{one.table}`" if one.table else "the evaluation"
        self.report(
            one.made or one.site,
            f"{share:.0%} of the samples of one class of {table} {how} that were trained on",
            run=run,
            label="a class that was filled up before the split",
            related=(Mark(one.site, "the evaluation"),) if one.made and one.site else (),
            cost=f"of another class it is {one.free_hits / one.free:.0%}; the evaluation measures memory",
            help="split first, and add samples to the training part only",
            confidence=Confidence.MEDIUM,
            unit="evaluations",
            key=(one.site, one.table),
        )

    def _found(self, loader: int, shared: SamplesShared, run: Progress) -> None:
        name = run.loader_name(loader)
        training = next((run.loaders[number] for number in shared.trained if number in run.loaders), None)
        how = "by value" if shared.by_value else "by index"
        marks = (
            Mark(None if training is None else training.site, "trained on these"),
            Mark(_made(loader, run), f"makes `{name}`"),
        )
        self.report(
            self._started.get(loader) or shared.site,
            f"{shared.shared} of the {shared.samples} samples of `{name}` were trained on",
            run=run,
            label="evaluated on training samples",
            related=tuple(mark for mark in marks if mark.site is not None),
            cost=f"{shared.shared} samples are training samples (compared {how}), {shared.outside} are not",
            help="split the data once, and use the two parts of that split for training and evaluation",
            confidence=Confidence.HIGH if leaks(shared) else Confidence.MEDIUM,
            unit="evaluations",
            key=self._started.get(loader) or loader,
        )


def _made(loader: int, run: Progress) -> Site | None:
    """Return the line that created a loader, which identifies loaders that are rebuilt in every epoch."""
    met = run.loaders.get(loader)
    return None if met is None else met.site
