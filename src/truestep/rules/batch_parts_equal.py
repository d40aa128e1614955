from __future__ import annotations

from truestep.events import BackwardEnded, Event, LossComputed, LossRead, PartnersScored, PartsCompared, RunEnded, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 3
_LEAST_ROWS = 24
"""Equal rows at all sampled steps together."""
_ROOTS = ("NllLoss", "CrossEntropy")
"""Operations of a cross entropy."""


class BatchPartsEqual(Rule):
    """Two parts of a batch that models are called on have equal values: two views, a state and the next one.

    What it does
    ------------
    Compares, at sampled steps, the batches of floating-point numbers that the models of one step are called on, if
    variables of one function hold them. Reports two variables if at least nine of ten rows are equal, at three sampled
    steps and in all others, although each has its own memory: an environment that is reset has other rows between.
    Parts with few different values, such as bits, are compared if they are the first arguments of their calls.
    Also reports a batch of which the first half equals the second, if the results of the model for both halves are
    equal too; and a contrastive cross entropy, differentiated alone, in which all partners have one score at all
    sampled steps, the largest of all, as a normalised vector has it with itself.

    Why it matters
    --------------
    The second part adds no information to the first. A contrastive loss of equal views has nothing to learn, a
    value of the next state is that of the state itself. In the proof, two views of a sample have a similarity of 1
    from the first step, and a classifier of their features has an accuracy of 0.50 instead of 0.90.

    Example
    -------
    ::

        def __getitem__(self, index):
            view = self.augment(self.images[index])
            return view, view

    Fix
    ---
    Make each part for itself::

        return self.augment(self.images[index]), self.augment(self.images[index])

    In a replay buffer, copy a state that the environment writes into before it is stored.

    Known false alarms
    ------------------
    Inputs of a teacher and a student that are prepared by two equal statements. Not reported: copies (a variable that
    is made from the other), views of one memory, parts that no model is called on, such as the target of an
    autoencoder, constant inputs, one-hot classes, models with dropout, which can differ by its draws, and scores of
    samples with themselves beside another loss, which spread the results.

    References
    ----------
    - https://arxiv.org/abs/2002.05709
    """

    id = "batch-parts-equal"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (PartsCompared, PartnersScored, LossComputed, LossRead, BackwardEnded)
    needs = (PartsCompared,)
    asks = "the parts of a batch differ"

    def __init__(self) -> None:
        super().__init__()
        self._equal: dict[tuple[str, str], int] = {}
        """Names of two parts to the number of sampled steps at which they were equal; -1 after any other."""
        self._rows: dict[tuple[str, str], int] = {}
        """Names of two parts to the number of their equal rows at all sampled steps."""
        self._itself: dict[Site | None, int] = {}
        """Line of a contrastive loss to the sampled steps at which all partners scored highest; -1 after others."""
        self._losses: set[Site | None] = set()
        """Lines of losses with a gradient since the last backward pass."""

    def suspected(self) -> bool:
        return super().suspected() or any(0 < count < _LEAST_STEPS for count in self._equal.values())

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case PartsCompared():
                self._compared(event, run)
            case PartnersScored(site=site):
                before = self._itself.get(site, 0)
                self._itself[site] = before + 1 if event.itself and before >= 0 else -1
            case LossComputed(grad=True, input_from=made, site=site) if made:
                self._losses.add(site)
            case LossRead() if len(self._losses) > 1 or not (event.function or event.root).startswith(_ROOTS):
                self._itself |= dict.fromkeys(self._losses, -1)  # a term that spreads the results, beside another one
            case BackwardEnded():
                self._losses.clear()

    def ended(self, event: RunEnded, run: Progress) -> None:
        for site, count in self._itself.items() if not self._drafts else ():
            if count < _LEAST_STEPS:
                continue
            draft = self.report(
                site,
                "the partner of each sample in the contrastive loss is the sample itself",
                run=run,
                label="each has its largest score with its partner, the same in all rows",
                cost="the loss can only push samples apart: nothing brings two views of one together",
                help="compare the results of two views, each made for itself",
                unit="losses read",
                key=site,
            )
            draft.count = draft.total = count

    def _compared(self, event: PartsCompared, run: Progress) -> None:
        key = event.one, event.other
        before = self._equal.get(key, 0)
        self._equal[key] = count = before + 1 if event.equal and before >= 0 else -1
        if count < 0:
            self.withdraw(key)
        halves = event.one == "first half"
        self._rows[key] = rows = self._rows.get(key, 0) + event.rows
        met = run.models.get(event.model)
        if met is not None and any("Dropout" in kind for kind in met.sensitive):
            return  # two draws of dropout for one sample
        if count < _LEAST_STEPS or (rows < _LEAST_ROWS and not halves):
            return
        names = "the two halves of a batch" if halves else f"`{event.one}` and `{event.other}`"
        draft = self.report(
            event.made or event.site,
            f"{names} have equal rows in every batch",
            run=run,
            label="makes equal parts" if event.made else f"`{run.model_name(event.model)}` is called on equal parts",
            related=(Mark(event.site, "the call"),) if event.made and event.site else (),
            cost="the second part adds no information to the first",
            help="make each part for itself, and copy arrays that are written again",
            unit="steps read",
            key=key,
        )
        draft.count = draft.total = count
