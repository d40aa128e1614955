"""DataLoaders of the user's as loaders of a run, with the order of a pass repeated on resume.

The run cannot position the user's sampler, workers and data set. So a resumed pass restores the random states from the
start of the pass, reads the finished batches again, and drops them.
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
"""Batch size that varies or is unknown."""


class GivenLoader:
    """A DataLoader with the interface of `Loader`.

    Args:
        loader: any DataLoader; it is replaced if the loop builds one for each epoch.
        name: name in the checkpoint.

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
        """Random states at the start of passes, by number of the pass: for running passes and passes to resume."""

    @property
    def dataset(self) -> Any:
        """Return its data set."""
        return self.loader.dataset

    @property
    def batch_size(self) -> int:
        """Return the number of samples in a batch; -1 if a batch sampler decides."""
        return self.loader.batch_size or VARIES

    @property
    def num_workers(self) -> int:
        """Return the number of worker processes."""
        return self.loader.num_workers

    @property
    def shuffle(self) -> bool:
        """Return True unless samples are in the order of the data set."""
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
        """Return True if a pass has started and not ended."""
        return bool(self._begun)

    def __len__(self) -> int:
        """Return the number of batches in a pass; raise TypeError if it is unknown."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over one pass that is not part of the run."""
        return iter(self.loader)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yield the batches of one pass; until `end` is called for it, a pass with the same number repeats them.

        Args:
            epoch: number of the pass; the user must call `set_epoch` of a sampler.
            start: number of finished batches, which are read and dropped.
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
            if start:  # otherwise the sampler has not drawn its order yet
                set_rng_state(now)
        self._at = (epoch, start)
        for given, batch in enumerate(batches, start + 1):
            self._at = (epoch, given)
            yield batch

    def end(self, epoch: int) -> None:
        """Remove the random states of a pass that has ended."""
        self._begun.pop(epoch, None)

    def state_dict(self, position: int | None = None, epoch: int | None = None) -> State:
        """Return the position of the loader, and the random states at the start of its pass.

        Args:
            position: number of finished batches; None for the number yielded.
            epoch: number of the pass; None for the latest one with a batch.
        """
        latest, given = self._at
        epoch = latest if epoch is None else epoch
        state: State = {"epoch": epoch, "position": given if position is None else position}
        return {**state, "dataset": self._begun[epoch]} if epoch in self._begun else state

    def load_state_dict(self, state: State) -> None:
        """Make `epoch(state["epoch"], ...)` start with the random states of the stopped pass; warn of the rereading."""
        if "dataset" in state:
            self._begun[state["epoch"]] = state["dataset"]
        self._at = (state["epoch"], state["position"])
        if not self._said:
            self._said = True
            warnings.warn(
                f"the finished batches of {self.name!r}, a DataLoader, are read again and dropped, in the order that "
                "follows from the restored random states; counters in attributes of its sampler or data set are not "
                "restored: run.loader(dataset, batch_size=...) resumes without reading again",
                SamplesReadAgain,
                stacklevel=outside(),
            )

    def check_exact(self) -> bool:
        """Return True unless a resumed run is known to read other samples; warn before returning False.

        From the second epoch on, persistent workers have separate random states, which start again in the workers of a
        resumed run. The first samples are drawn under two seeds to see whether they depend on them.
        """
        if self.num_workers == 0 or not self.loader.persistent_workers or not self._draws():
            return True
        warnings.warn(
            f"a resumed run reads other samples of {self.name!r} than the stopped run: they are random, and the "
            "random states of persistent workers cannot be saved; use persistent_workers=False, or "
            "run.loader(dataset, batch_size=..., num_workers=...), which seeds each sample",
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
            return False  # the epoch will raise the same error

    def close(self) -> None:
        """Do nothing: the workers are the user's."""

    def _generators(self) -> list[Stateful]:
        """Return the random generators in attributes of the loader, its samplers and its data set."""
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
