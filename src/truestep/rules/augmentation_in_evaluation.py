"""Evidence from a copy of the data set: evaluation samples change with every read, as those of the training do."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.events import CheckSkipped, Event, LoaderStarted, ModelCalled, SampleReadAgain, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._formulas import lost_transforms
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import parts, splits
from truestep.syntax import Program, Suspicion


class AugmentationInEvaluation(Rule):
    """The evaluation reads its samples through the random transform of the training.

    What it does
    ------------
    Reads the first samples from a copy of the evaluation's data set several times. Reports inputs
    that change between reads while their label stays the same, if the training reads other samples through the same
    data set (`random_split`), the same transform or one that was built alike, or another data set of the same class
    with the same switch on: an attribute such as ``augment`` that is True, and without which the copy no longer changes
    its samples. Reports the reverse as well: an assignment such as ``val.dataset.transform = None`` after a split takes
    the transform from the training too, since both parts read one data set.

    Why it matters
    --------------
    The metric is measured on randomly cropped, flipped or distorted samples. It is lower than the model's true
    performance and varies from epoch to epoch, so checkpoints and schedules that follow it follow noise. The proof
    shows the lost accuracy.

    Example
    -------
    ::

        data = Pictures(transform=augment)
        train, val = random_split(data, [0.8, 0.2])     # both read through `augment`

    Fix
    ---
    Give the evaluation a separate data set over the same files::

        train = Subset(Pictures(transform=augment), indices[:800])
        val = Subset(Pictures(transform=plain), indices[800:])

    Known false alarms
    ------------------
    A metric that is measured on distorted samples on purpose, through the transform of the training. Not reported:
    test-time augmentation (the loader is read several times between two steps, or the transform is another one), random
    inputs without a class label, the accuracy on the training samples themselves, and data sets that cannot be copied.
    An assignment through a part is not reported after the training, where it is switched back, also by a method, if a
    part got a separate data set, or if the data set was built without another value.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.random_split
    - https://docs.pytorch.org/vision/stable/transforms.html
    """

    id = "augmentation-in-evaluation"
    since = "0.1"
    severity = Severity.WARNING
    account = "randomness"
    confidence = Confidence.MEDIUM
    watches = (SampleReadAgain, CheckSkipped, ModelCalled, LoaderStarted)
    needs = (SampleReadAgain,)
    asks = "evaluation data stay the same"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        yield from splits.augmentation_in_evaluation(program)
        yield from parts.lost_in_training(program)

    def __init__(self) -> None:
        super().__init__()
        self._trained_on: dict[int, set[int]] = {}
        self._started: dict[int, tuple[int, int, Site | None]] = {}
        """Loader to the step of its latest start, the number of its starts in that step, and their line."""
        self._several: set[int] = set()
        """Loaders that were read more than once between two steps."""
        self._skipped = ""

    def unobserved(self, run: Progress) -> str:
        return self._skipped if SampleReadAgain not in run.met and self._skipped else super().unobserved(run)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelCalled(loader=int(loader)) if event.tracked:
                self._trained_on.setdefault(event.model, set()).add(loader)
                self.withdraw(loader)
            case LoaderStarted():
                step, times, _ = self._started.get(event.loader, (-1, 0, None))
                times = times + 1 if step == run.step else 1
                self._started[event.loader] = (run.step, times, event.site)
                if times > 1:
                    self._several.add(event.loader)
                    self.withdraw(event.loader)
            case CheckSkipped(check="reads"):
                self._skipped = event.reason
            case SampleReadAgain() if event.differ and event.loader not in self._several:
                self._changing(event, run)
            case SampleReadAgain(differ=False):
                self._lost(event, run)

    def _changing(self, event: SampleReadAgain, run: Progress) -> None:
        trained = self._trained_on.get(event.model, set())
        beside = sorted(trained & set(event.beside))
        if not beside or event.loader in trained:
            return
        training = run.loaders.get(beside[0])
        *_, site = self._started.get(event.loader, (0, 0, event.site))
        name, other = run.loader_name(event.loader), run.loader_name(beside[0])
        self.report(
            site or event.site,
            f"the samples of `{name}` change each time they are read, as those of `{other}` do",
            run=run,
            label="evaluated on randomly changed samples",
            related=() if training is None or training.site is None else (Mark(training.site, "trained on these"),),
            cost="read again from a copy of the data set, the first samples had other inputs and the same labels",
            help="give the evaluation a data set without the random transform",
            unit="checks",
            key=event.loader,
        )

    def _lost(self, event: SampleReadAgain, run: Progress) -> None:
        """Report a transform that an assignment through the part of the evaluation takes from that of the training."""
        beside = sorted(self._trained_on.get(event.model, set()) & set(event.beside))
        if not beside or event.loader in self._trained_on[event.model]:
            return
        loaders = [run.loaders.get(number) for number in (event.loader, *beside)]
        paths = {one.site.path: None for one in loaders if one is not None and one.site is not None}
        for place, found, others in lost_transforms(paths):
            self.report(
                place,
                found.message,
                run=run,
                label=found.label,
                related=tuple(Mark(site, label) for site, label in others),
                cost="the first samples of the evaluation no longer change, and the training reads the same data set",
                help=found.help,
                confidence=Confidence.HIGH,
                unit="checks",
            )
