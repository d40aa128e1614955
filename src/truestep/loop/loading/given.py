"""A DataLoader of the user's in the place of a loader: its batches as they come, and its order repeated on resume.

Its sampler, its workers and its data set are the user's, so a resumed pass reads the finished batches again, from the
random states that the pass began with, and drops them.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from truestep.errors import InexactResume, SamplesReadAgain
from truestep.loop.checkpoint.stateful import Stateful
from truestep.loop.loading.dataset_probe import light_copy, same
from truestep.loop.process.stacklevel import outside
from truestep.loop.rng.seed import borrowed, numpy, rng_state, set_rng_state
from truestep.loop.rng.stateful_generators import stateful

State = dict[str, Any]
VARIES = -1
"""In the place of a batch size: it differs between batches, or is unknown."""


class GivenLoader:
    """A DataLoader with the interface of `Loader`.

    Args:
        loader: any DataLoader; may be replaced where a body builds one for each epoch.
        name: in the checkpoint.

    Example:
        >>> given = GivenLoader(DataLoader([1, 2, 3], batch_size=2), "train")
        >>> [batch.tolist() for batch in given.epoch(0)], len(given)
        ([[1, 2], [3]], 2)
    """

    def __init__(self, loader: DataLoader[Any], name: str) -> None:
        self.loader = loader
        self.name = name
        self._at = (0, 0)
        self._said = False
        self._begun: dict[int, State] = {}
        """The random states that passes began with, by number: of those under way, and of those to be resumed."""

    @property
    def dataset(self) -> Any:
        """Return its data set."""
        return self.loader.dataset

    @property
    def batch_size(self) -> int:
        """Return the samples in a batch; -1 where a batch sampler decides."""
        return self.loader.batch_size or VARIES

    @property
    def num_workers(self) -> int:
        """Return how many processes read samples."""
        return self.loader.num_workers

    @property
    def shuffle(self) -> bool:
        """Return True unless samples come in the order of the data set."""
        if isinstance(self.dataset, IterableDataset):
            return False
        batch_sampler = self.loader.batch_sampler
        if batch_sampler is not None and type(batch_sampler) is not BatchSampler:
            return True
        return type(self.loader.sampler) is not SequentialSampler

    @property
    def drop_last(self) -> bool:
        """Return True if an incomplete last batch is left out."""
        return bool(getattr(self.loader.batch_sampler, "drop_last", self.loader.drop_last))

    @property
    def under_way(self) -> bool:
        """Return True if a pass was begun and has not ended."""
        return bool(self._begun)

    def __len__(self) -> int:
        """Return how many batches a pass has; raise TypeError where that is unknown."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        """Return the batches of one pass, which is none of the run's."""
        return iter(self.loader)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yield the batches of one pass; one that was begun before is repeated, until `end` is called for it.

        Args:
            epoch: number of the pass; a sampler with `set_epoch` is the user's to tell.
            start: batches that are read and dropped because they are finished.
        """
        generators = self._generators()
        state = self._begun.get(epoch)
        if state is None:
            self._begun[epoch] = {"rng": rng_state(), "generators": [one.state_dict() for one in generators]}
            batches: Iterator[Any] = islice(self.loader, start, None)
        else:
            now = rng_state()
            set_rng_state(state["rng"])
            for one, saved in zip(generators, state["generators"], strict=False):
                one.load_state_dict(saved)
            batches = iter(self.loader)
            for _ in range(start):
                next(batches, None)
            if start:  # else the sampler has not drawn its order yet
                set_rng_state(now)
        self._at = (epoch, start)
        for given, batch in enumerate(batches, start + 1):
            self._at = (epoch, given)
            yield batch

    def end(self, epoch: int) -> None:
        """Forget the random states that a pass began with."""
        self._begun.pop(epoch, None)

    def state_dict(self, position: int | None = None, epoch: int | None = None) -> State:
        """Return where the loader is, and the random states that its pass began with.

        Args:
            position: batches that are finished; what has been given out where None.
            epoch: number of the pass; the latest that gave a batch where None.
        """
        latest, given = self._at
        epoch = latest if epoch is None else epoch
        state: State = {"epoch": epoch, "position": given if position is None else position}
        return {**state, "dataset": self._begun[epoch]} if epoch in self._begun else state

    def load_state_dict(self, state: State) -> None:
        """Make `epoch(state["epoch"], ...)` begin with the random states of the stopped pass; warn of the reading."""
        if "dataset" in state:
            self._begun[state["epoch"]] = state["dataset"]
        self._at = (state["epoch"], state["position"])
        if not self._said:
            self._said = True
            warnings.warn(
                f"the finished batches of {self.name!r}, a DataLoader, are read again and dropped, in an order that "
                "follows from the same random states; what its sampler or data set counts in attributes is not "
                "restored: run.loader(dataset, batch_size=...) resumes without reading again",
                SamplesReadAgain,
                stacklevel=outside(),
            )

    def check_exact(self) -> bool:
        """Return True unless a resumed run is known to read other samples; warn before returning False.

        From the second epoch on, persistent workers draw from random states of their own, which begin again in the
        workers of a resumed run. The first samples are drawn under two seeds to see whether that matters.
        """
        if self.num_workers == 0 or not self.loader.persistent_workers or not self._draws():
            return True
        warnings.warn(
            f"a resumed run reads other samples of {self.name!r} than the stopped run: they are random, and the "
            "random states of persistent workers cannot be saved; use persistent_workers=False, or "
            "run.loader(dataset, batch_size=..., num_workers=...), where each sample has a random state of its own",
            InexactResume,
            stacklevel=outside(),
        )
        return False

    def _draws(self) -> bool:
        """Return True if the first samples depend on the global random states."""
        try:
            drawn = []
            for seed in (0, 1):
                dataset = light_copy(self.dataset)
                if dataset is None:
                    return False
                with borrowed() as seeded:
                    seeded(seed)
                    if isinstance(dataset, IterableDataset):
                        drawn.append(list(islice(iter(dataset), 2)))
                    else:
                        drawn.append([dataset[place] for place in range(min(4, len(dataset)))])
            return not same(*drawn)
        except Exception:
            return False  # whatever it is, the epoch will raise it

    def close(self) -> None:
        """Do nothing: the workers are the user's."""

    def _generators(self) -> list[Stateful]:
        """Return the generators of random numbers that the loader, its samplers and its data set hold."""
        batch_sampler = self.loader.batch_sampler
        sampler = getattr(batch_sampler, "sampler", self.loader.sampler)
        holders = (self.loader, batch_sampler, sampler, self.dataset)
        found = {
            id(value): value
            for holder in holders
            for value in getattr(holder, "__dict__", {}).values()
            if isinstance(value, _KINDS)
        }
        return [stateful(value) for value in found.values()]


_KINDS: tuple[type, ...] = (torch.Generator, random.Random)
if numpy is not None:
    _KINDS += (numpy.random.Generator, numpy.random.RandomState)
