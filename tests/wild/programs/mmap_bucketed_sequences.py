"""Healthy: sequences in a memory-mapped file, batches of like length by a custom sampler, padded in collate, packed in the GRU."""
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)


def write(folder, n):
    lengths = np.random.randint(4, 24, n)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    values = np.memmap(os.path.join(folder, "values.bin"), dtype="float32", mode="w+", shape=(int(starts[-1]), 2))
    values[:] = np.random.randn(int(starts[-1]), 2)
    labels = np.array([values[a:b, 0].sum() > values[a:b, 1].sum() for a, b in zip(starts, starts[1:])], dtype=np.int64)
    values.flush()
    np.savez(os.path.join(folder, "index.npz"), starts=starts, labels=labels)


class Sequences(Dataset):
    def __init__(self, folder, part):
        index = np.load(os.path.join(folder, "index.npz"))
        self.path, self.starts, self.labels, self.part, self.values = os.path.join(folder, "values.bin"), index["starts"], index["labels"], part, None

    def __len__(self):
        return len(self.part)

    def length(self, i):
        k = self.part[i]
        return int(self.starts[k + 1] - self.starts[k])

    def __getitem__(self, i):
        if self.values is None:  # opened where it is used, in the worker
            self.values = np.memmap(self.path, dtype="float32", mode="r").reshape(-1, 2)
        k = self.part[i]
        return torch.from_numpy(self.values[self.starts[k]:self.starts[k + 1]].copy()), int(self.labels[k])


class BucketBatchSampler(Sampler):
    def __init__(self, dataset, batch_size, pool=160):
        self.dataset, self.batch_size, self.pool = dataset, batch_size, pool

    def __iter__(self):
        order, batches = torch.randperm(len(self.dataset)).tolist(), []
        for i in range(0, len(order), self.pool):
            pool = sorted(order[i:i + self.pool], key=self.dataset.length)
            batches += [pool[j:j + self.batch_size] for j in range(0, len(pool), self.batch_size)]
        random.shuffle(batches)
        yield from batches

    def __len__(self):
        return -(-len(self.dataset) // self.batch_size)


def collate(samples):
    samples.sort(key=lambda s: len(s[0]), reverse=True)
    xs, ys = zip(*samples)
    return pad_sequence(xs, batch_first=True), torch.tensor([len(x) for x in xs]), torch.tensor(ys)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(2, 16, batch_first=True), nn.Linear(16, 2)

    def forward(self, x, lengths):
        _, h = self.gru(pack_padded_sequence(x, lengths, batch_first=True))
        return self.head(h[-1])


with tempfile.TemporaryDirectory() as folder:
    write(folder, 480)
    order = np.random.permutation(480)
    train, test = Sequences(folder, order[:400]), Sequences(folder, order[400:])
    train_loader = DataLoader(train, batch_sampler=BucketBatchSampler(train, 20), collate_fn=collate, num_workers=1)
    test_loader = DataLoader(test, batch_size=80, collate_fn=collate)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for epoch in range(5):
        model.train()
        for x, lengths, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x, lengths), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = [(model(x, lengths).argmax(1) == y).float().mean().item() for x, lengths, y in test_loader][0]
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy:.3f}")
