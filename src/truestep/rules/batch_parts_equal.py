from __future__ import annotations

from truestep.events import Event, PartsCompared
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 3


class BatchPartsEqual(Rule):
    """Two parts of a batch that models are called on have equal values: two views, a state and the next one.

    What it does
    ------------
    Compares, at sampled steps, the batches of floating-point numbers that the models of one step are called on, if
    variables of one function hold them. Reports two variables if at least nine of ten rows are equal, at three sampled
    steps and in all others, although each has its own memory: an environment that is reset has other rows between.
    Also reports a batch of which the first half equals the second, if the results of the model for both halves are
    equal too.

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
    autoencoder, and constant inputs.

    References
    ----------
    - https://arxiv.org/abs/2002.05709
    """

    id = "batch-parts-equal"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (PartsCompared,)
    needs = (PartsCompared,)
    asks = "the parts of a batch differ"

    def __init__(self) -> None:
        super().__init__()
        self._equal: dict[tuple[str, str], int] = {}
        """Names of two parts to the number of sampled steps at which they were equal; -1 after any other."""

    def suspected(self) -> bool:
        return super().suspected() or any(0 < count < _LEAST_STEPS for count in self._equal.values())

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, PartsCompared):
            return
        key = event.one, event.other
        before = self._equal.get(key, 0)
        self._equal[key] = count = before + 1 if event.equal and before >= 0 else -1
        if count < 0:
            self.withdraw(key)
        if count < _LEAST_STEPS:
            return
        halves = event.one == "first half"
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
