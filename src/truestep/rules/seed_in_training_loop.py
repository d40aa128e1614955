from __future__ import annotations

from collections.abc import Iterator

from truestep.events import DrawsRepeated, Event, ModelCalled, OptimizerStepped, Seeded, Site
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import seeds
from truestep.syntax import Program, Suspicion

_Seed = tuple[Site | None, int]


class SeedInTrainingLoop(Rule):
    """The generator is seeded again during the training, so that the same random numbers are drawn again and again.

    What it does
    ------------
    Finds a line that sets the seed of torch's global generator to a value that it has set before, between steps of one
    optimizer, if the training then draws numbers. The state of the generator shows this: shuffled batches, dropout,
    noise and augmentations all change it.

    Why it matters
    --------------
    After each seed the training draws the same numbers: the batches come in the same order, dropout has the same masks,
    an augmentation makes the same versions, and samples that were meant to be new are the old ones. In the proof, a net
    that is trained on new points in each epoch sees the same ones instead, and its error is three to seven times as
    large.

    Example
    -------
    ::

        for epoch in range(100):
            torch.manual_seed(0)            # every epoch draws the same numbers
            train(model, loader)

    Fix
    ---
    Seed once, before the training::

        torch.manual_seed(0)
        for epoch in range(100):
            train(model, loader)

    Known false alarms
    ------------------
    Data that is meant to be the same in each epoch and is made by a function that sets the seed: a ``torch.Generator``
    for this data leaves the other draws alone. Not reported: seeds that differ from epoch to epoch, one seed for each
    fold or trial with a new optimizer, a seed for an evaluation, and generators of the script.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/randomness.html
    - https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html
    """

    id = "seed-in-training-loop"
    since = "0.1"
    severity = Severity.WARNING
    account = "randomness"
    confidence = Confidence.MEDIUM
    watches = (Seeded, DrawsRepeated, ModelCalled, OptimizerStepped)
    needs = (ModelCalled, OptimizerStepped)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return seeds.seed_in_training_loop(program)

    def __init__(self) -> None:
        super().__init__()
        self._owners: dict[_Seed, int] = {}
        """Line and seed to the optimizer of the first step after it."""
        self._set: list[_Seed] = []
        """Lines and seeds since the latest step."""
        self._repeated: Site | None = None
        """Line of a seed after which the training drew numbers."""
        self._found: dict[Site | None, int] = {}
        """Line to the step of its first repetition."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case Seeded(seed=seed) if seed >= 0:
                self._set.append((event.site, seed))
                self._repeated = None
            case ModelCalled(grad=False) if self._repeated is None:
                self._set.clear()  # a seed for an evaluation
            case DrawsRepeated():
                self._repeated = event.site
            case OptimizerStepped():
                for key in self._set:
                    if self._owners.get(key) == event.optimizer and key[0] == self._repeated:
                        self._report(key[0], run)
                    self._owners[key] = event.optimizer
                self._set.clear()
                self._repeated = None

    def _report(self, site: Site | None, run: Progress) -> None:
        """Report the second repetition at a line, and count the later ones."""
        first = self._found.setdefault(site, run.step)
        if first == run.step:
            return
        draft = self.report(
            site,
            "the same random numbers are drawn again and again in the training",
            run=run,
            label="sets the seed that it has set before, between steps of one optimizer",
            help="set the seed once, before the training",
            unit="seeds",
        )
        if draft.count == 1:
            draft.count, draft.first_step = 2, first
