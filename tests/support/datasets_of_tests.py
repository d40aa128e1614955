"""Data sets that loaders are tested with: at module level, where workers and pickles find them."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info


class Noisy(Dataset):
    """Each sample is its index and a draw from each of the three global generators."""

    def __init__(self, length=23):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return index, random.random(), float(np.random.rand()), float(torch.rand(()))


class NoisyBatches(Noisy):
    def __getitems__(self, indices):
        return [(index, random.random(), float(np.random.rand()), float(torch.rand(()))) for index in indices]


class OwnGenerator(Dataset):
    """Draws from a generator made in its `__init__`, which cannot be resumed."""

    def __init__(self):
        self.generator = np.random.default_rng(0)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index, float(self.generator.random())


class Counting(IterableDataset):
    """0 ... length - 1, each with draws from the global generators."""

    def __init__(self, length=23):
        self.length = length

    def __iter__(self):
        for number in range(self.length):
            yield number, random.random(), float(torch.rand(()))


class SplitsItself(IterableDataset):
    def __init__(self, length=23):
        self.length = length

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        yield from range(first, self.length, step)


class Stateful(IterableDataset):
    """Keeps its place, in a dict that it goes on changing, and remembers how many items it made."""

    def __init__(self, length=23):
        self.length, self.made, self.epoch = length, 0, 0
        self.place = {"place": 0}

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        first, self.place["place"] = self.place["place"], 0
        for number in range(first, self.length):
            self.made += 1
            self.place["place"] = number + 1
            yield number + 100 * self.epoch, random.random()
        self.place["place"] = 0

    def state_dict(self):
        return self.place

    def load_state_dict(self, state):
        self.place = state


class Fields:
    """In memory, by index, as the data sets of `truestep.data`."""

    def __init__(self, *tensors):
        self.tensors = tensors
        self.device = tensors[0].device
        self.moves = []

    def __len__(self):
        return len(self.tensors[0])

    def batch(self, indices):
        return tuple(tensor[indices] for tensor in self.tensors)

    def to(self, device):
        self.moves.append(device)
        self.device = device
        return self


class NoisyFields(Fields):
    def batch(self, indices):
        (x,) = super().batch(indices)
        return x, torch.rand(len(x))
