"""A data loader."""

import torch


class Loader:
    """Yield batches of tensors of equal length, in a new random order in each pass.

    A batch is one indexing per tensor; `torch.utils.data.DataLoader` reads sample by sample and stacks them.

    Args:
        *tensors: of the same length, such as inputs and labels.
        batch_size: samples in a batch.
        shuffle: whether each pass has a new random order.
        drop_last: whether a smaller last batch is dropped.
        generator: for the random order; the same seed gives the same orders.

    Source: the conventions of `torch.utils.data.DataLoader`.

    >>> for x, y in Loader(torch.arange(5), torch.arange(5) * 10, batch_size=2):
    ...     print(x.tolist(), y.tolist())
    [0, 1] [0, 10]
    [2, 3] [20, 30]
    [4] [40]
    """

    def __init__(self, *tensors, batch_size, shuffle=False, drop_last=False, generator=None):
        self.tensors = tensors
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator

    def __len__(self):
        full, rest = divmod(len(self.tensors[0]), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self):
        samples = len(self.tensors[0])
        order = torch.randperm(samples, generator=self.generator) if self.shuffle else torch.arange(samples)
        for indices in order.split(self.batch_size)[: len(self)]:
            yield tuple(tensor[indices] for tensor in self.tensors)
