from __future__ import annotations

from truestep.events import CollatedAgain, Event, MapsPaired, PartnersScored, RowsPaired, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 3
_LEAST_MAPS = 3
_LOG_CHANCE = -12.0
"""Logarithm of the largest probability that all these rows differ by chance."""


class TargetsOfOtherSamples(Rule):
    """The inputs of a step and its targets, or another input, are taken from different rows, or pixels.

    What it does
    ------------
    Compares, at sampled steps, the rows of the model's input and of the targets of its loss, by value, with the
    batch that a DataLoader gave, and with the tables that variables hold. Reports a line if the targets are
    those of other samples at three sampled steps, and not by chance: another order of the batch, or other indices.
    Also reports a contrastive cross entropy in which, at all sampled steps, three of four samples are more similar to
    the sample of the same number, or at the same place of the other half of the batch, than to their partner.

    Calls the collate function of a loader again, on copies of the same samples in another order. Reports it if a loss
    pairs two parts of its batches that then belong together in another way, although each part has the same rows.

    Compares the samples and the labels that a data set holds with the tables that they were taken from. Reports samples
    of some rows with the labels of the first ones.

    Compares images of the training, as the loader gives them and as the model reads them, with those of earlier sampled
    steps. Reports at least three images that are flipped, rotated by a quarter or shifted exactly, while their maps of
    classes stay as they are and explain the pixels of the image before the turn much better.

    Why it matters
    --------------
    The model is trained with targets that say nothing about its inputs, and learns their frequencies. No shape is
    wrong, and the loss falls to that of the best constant. In the proof, with three classes, the accuracy is 0.32
    instead of 0.96; in the second one, with sequences that a collate function sorts, 0.50 instead of 1.00.

    Example
    -------
    ::

        index = torch.randperm(len(x))[:64]
        loss = F.cross_entropy(model(x[index]), y[:64])     # the targets of the first 64 rows

        def collate(batch):
            texts = sorted([text for text, _ in batch], key=len)        # the labels stay where they are
            return pad_sequence(texts), torch.tensor([label for _, label in batch])

    Fix
    ---
    Index all parts of a sample alike::

        loss = F.cross_entropy(model(x[index]), y[index])

        batch = sorted(batch, key=lambda sample: len(sample[0]))        # in `collate`, whole samples

    Known false alarms
    ------------------
    None known. Not reported: targets that another loss of the run pairs with their own rows (mixtures of samples,
    shuffled negatives), targets that the model reads, results that are reordered before the loss, targets that are
    made for each batch, images that are cropped or get noise as well, results that an operation can turn back,
    maps of numbers such as directions, models with several tensors or with layers that mix all places,
    targets that are the image itself, two parts of one table, tables of different length, and collate functions with
    effects outside of their batch.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.TensorDataset
    """

    id = "targets-of-other-samples"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (CollatedAgain, MapsPaired, RowsPaired, PartnersScored)
    needs = (RowsPaired,)
    explains = ("loss-at-chance",)
    asks = "inputs and targets are of the same rows"

    def __init__(self) -> None:
        super().__init__()
        self._crossed: dict[tuple[str, ...], CollatedAgain] = {}
        """Parts of batches that a collate function pairs by their places."""
        self._paired: dict[tuple[str, ...], Site | None] = {}
        """Parts of batches that a loss pairs by their places, with its line."""
        self._images: dict[int, int] = {}
        """Model to the number of its turned images."""
        self._equal: set[str] = set()
        """Tables with targets that were once those of the inputs."""
        self._partners: dict[Site | None, int] = {}
        """Line of a contrastive loss to the sampled steps at which the partners were others; -1 after usual ones."""
        self._differ: dict[tuple[Site | None, str], tuple[int, float]] = {}
        """Line and table to the sampled steps at which rows differed: their number, and the probability by chance."""

    def suspected(self) -> bool:
        return super().suspected() or any(
            count and not _is_enough(count, chance) for count, chance in self._differ.values()
        )

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, CollatedAgain):
            self._crossed |= dict.fromkeys(event.crossed, event)
        elif isinstance(event, RowsPaired) and event.batch and event.equal and not event.model:
            self._paired.setdefault(tuple(sorted((event.table, event.other))), event.site)
        for pair in self._crossed.keys() & self._paired.keys():
            self._collated(pair, self._crossed[pair], run)
        if isinstance(event, MapsPaired):
            self._turned(event, run)
        if isinstance(event, PartnersScored):
            self._scored(event, run)
        if not isinstance(event, RowsPaired):
            return
        if event.stored is not None:
            if not event.equal:
                self._held(event, run)
            return
        key = event.site, event.other
        if event.equal:
            self._equal.add(event.other)
            for site, other in [one for one in self._differ if one[1] == event.other]:
                self._differ[site, other] = 0, 0.0
                self.withdraw((site, other))
        if event.other in self._equal:
            return
        count, chance = self._differ.get(key, (0, 0.0))
        count, chance = self._differ[key] = count + 1, chance + event.chance
        if not _is_enough(count, chance):
            return
        if event.batch:
            where, share = "in another order than", "each target is that of another sample of its batch"
        else:
            where, share = "not", "each batch has the rows of other samples"
        draft = self.report(
            event.site,
            f"the rows of `{event.other}` in a batch are {where} those of `{event.table}`",
            run=run,
            label="not the rows of the model's input" if not event.model else "arguments of different rows",
            cost=f"both have {event.rows:,} rows, and {share}",
            help=f"index `{event.other}` and `{event.table}` with the same indices",
            related=(Mark(event.made, "makes the targets"),) if event.made not in (None, event.site) else (),
            unit="steps read",
            key=key,
        )
        draft.count = draft.total = count

    def _turned(self, event: MapsPaired, run: Progress) -> None:
        """Report images that are turned without their label maps."""
        count = self._images[event.model] = self._images.get(event.model, 0) + event.turned
        if count < _LEAST_MAPS or event.maps < _LEAST_MAPS:
            return
        site = event.made or event.site
        marks = (Mark(event.loss, "the loss"),) if event.loss not in (None, site) else ()
        draft = self.report(
            site,
            f"images of `{run.model_name(event.model)}` are {event.how}, and their label maps are not",
            run=run,
            label="makes the images" if event.made else "reads the images",
            related=marks,
            cost=f"at sampled steps, {count} images came in another position with the same map: pixels are trained "
            "with the labels of others",
            help="turn the image and its label map together, with the same random decision",
            unit="images",
            key=(event.model, "maps"),
        )
        draft.count = draft.total = count

    def _held(self, event: RowsPaired, run: Progress) -> None:
        """Report a data set that was built from the samples and the labels of different rows."""
        loader = run.loaders.get(event.stored or 0)
        draft = self.report(
            None if loader is None else loader.site,
            f"the data set of `{run.loader_name(event.stored or 0)}` has the rows of `{event.table}` "
            f"with the values of other rows of `{event.other}`",
            run=run,
            label="reads samples with the labels of others",
            cost=f"both have {event.rows:,} rows, and the data set was given different ones of each",
            help=f"index `{event.other}` and `{event.table}` with the same indices",
            unit="data sets",
            key=(event.stored, event.other),
        )
        draft.count = 1

    def _collated(self, pair: tuple[str, ...], event: CollatedAgain, run: Progress) -> None:
        one, two = pair
        draft = self.report(
            event.made or event.site,
            f"`{event.function}` puts `{one}` and `{two}` of a batch in different orders",
            run=run,
            label="moves the rows of one part, and not those of the other",
            related=(Mark(self._paired[pair], "the loss pairs them"),) if self._paired[pair] else (),
            cost="on copies, the same samples in another order were paired in another way",
            help="sort or shuffle the list of whole samples, before taking them apart",
            unit="checks",
            key=pair,
        )
        draft.count = 1

    def _scored(self, event: PartnersScored, run: Progress) -> None:
        before = self._partners.get(event.site, 0)
        self._partners[event.site] = count = before + 1 if event.other and before >= 0 else -1
        if count < 0:
            self.withdraw(event.site)
        if count < _LEAST_STEPS:
            return
        usual = f"at the same place of the other half of its {event.rows} rows" if event.symmetric else "at its own row"
        draft = self.report(
            event.site,
            "the partners in the contrastive loss are other samples",
            run=run,
            label="its classes are the columns of other samples",
            cost=f"three of four samples have a higher score with the sample {usual}",
            help="number the partners in the order of the rows and columns",
            unit="losses read",
            key=event.site,
        )
        draft.count = draft.total = count


def _is_enough(count: int, chance: float) -> bool:
    return count >= _LEAST_STEPS and chance <= _LOG_CHANCE
