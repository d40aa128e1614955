from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from truestep.events import (
    DrawsRepeated,
    Event,
    LossRead,
    ModelCalled,
    OptimizerBuilt,
    OptimizerStepped,
    RunEnded,
    Seeded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._formulas import program_of, site_of, text_of
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import seeds
from truestep.rules._syntax.steps.repetitions import loop_of_repetitions
from truestep.syntax import Program, Suspicion

_Seed = tuple[Site | None, int]
_LEAST_TRAININGS, _MOST_TRAININGS = 3, 64
_LEAST_LOSSES = 4


class _Training:
    """The losses of a training with a new optimizer, after a seed.

    Args:
        first: number of steps before it.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.built = False
        self.losses: dict[int, float] = {}
        """Step of the training to its loss."""


class SeedInTrainingLoop(Rule):
    """The generator is seeded again during the training, so that the same random numbers are drawn again and again.

    What it does
    ------------
    Finds a line that sets the seed of torch's global generator to a value that it has set before, between steps of one
    optimizer, if the training then draws numbers. The state of the generator shows this: shuffled batches, dropout,
    noise and augmentations all change it. Also reports three or more trainings, each with a new optimizer, that have
    the same losses since a line sets the same seed before each, if a loop repeats them for a mean or a deviation of
    their results, or for an ensemble.

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
    fold or trial with a new optimizer, a seed for an evaluation, and generators of the script; equal trainings in a
    program that measures time or compares them.

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
    watches = (Seeded, DrawsRepeated, LossRead, ModelCalled, OptimizerBuilt, OptimizerStepped)
    needs = (ModelCalled, OptimizerStepped)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        yield from seeds.seed_in_training_loop(program)
        yield from seeds.same_trainings(program)

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
        self._trainings: dict[_Seed, list[_Training]] = {}
        self._times: Counter[_Seed] = Counter()
        self._latest: _Training | None = None

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case Seeded(seed=seed) if seed >= 0:
                self._set.append((event.site, seed))
                self._repeated = None
                self._begin((event.site, seed), run)
            case OptimizerBuilt() if self._latest is not None and not self._latest.losses:
                self._latest.built = True
            case LossRead() if self._latest is not None:
                self._latest.losses[run.step - self._latest.first] = event.value
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

    def _begin(self, key: _Seed, run: Progress) -> None:
        """Begin a training after a seed; two seeds without a step between them begin the same one."""
        if self._latest is None or self._latest.first != run.step or self._latest.losses:
            self._latest = _Training(run.step)
        self._times[key] += 1
        known = self._trainings.setdefault(key, [])
        if len(known) < _MOST_TRAININGS:  # a seed can be set in each step
            known.append(self._latest)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for key, trainings in self._trainings.items():
            if event.how == "finished" and key[0] is not None and _are_equal(trainings):
                self._averaged(key[0], self._times[key], run)

    def _averaged(self, site: Site, times: int, run: Progress) -> None:
        """Report equal trainings if a loop repeats them for a mean over their results."""
        program = program_of(site.path)
        loop = None if program is None else loop_of_repetitions(program.tree, text_of(site.path), site.line)
        if program is None or loop is None:
            return
        draft = self.report(
            site,
            f"{times} trainings are the same: the same seed is set before each, and a mean is taken over them",
            run=run,
            label="sets the same seed before each training",
            related=(Mark(site_of(site.path, program.tree, loop), "repeats the training"),),
            help="set another seed for each training",
            cost="the mean is the result of one training, and the deviation is zero",
            unit="trainings",
            key=("trainings", site),
        )
        draft.count, draft.total, draft.first_step = times, times, None

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


def _are_equal(trainings: list[_Training]) -> bool:
    """Return True for three or more trainings with the same losses at the same steps."""
    if len(trainings) < _LEAST_TRAININGS or not all(one.built for one in trainings):
        return False
    first = trainings[0].losses
    shared = set(first).intersection(*(one.losses for one in trainings))
    same = all(one.losses[step] == first[step] for one in trainings for step in shared)
    return same and len(shared) >= _LEAST_LOSSES and len({first[step] for step in shared}) > 1
