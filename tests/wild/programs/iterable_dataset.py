"""Healthy: IterableDataset sharded by get_worker_info, with a shuffle buffer, two workers, a fixed number of steps."""
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class LogLines(IterableDataset):
    """Streams synthetic sensor lines; every worker reads its own share of the shards."""

    def __init__(self, shards, lines_per_shard=64, seed=0):
        super().__init__()
        self.shards, self.lines, self.seed = shards, lines_per_shard, seed
        self.epoch = 0

    def parse(self, shard):
        rng = random.Random(f"{self.seed}-{shard}")
        for _ in range(self.lines):
            temp, load, fan = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1)
            fault = float(temp + load - fan + rng.gauss(0, 0.3) > 0)
            yield torch.tensor([temp, load, fan]), torch.tensor([fault])

    def __iter__(self):
        info = get_worker_info()
        worker_id, num_workers = (info.id, info.num_workers) if info else (0, 1)
        rng = random.Random(self.seed * 1000 + self.epoch * 10 + worker_id)
        self.epoch += 1  # a persistent worker keeps its copy of the dataset
        shards = list(self.shards)[worker_id::num_workers]
        rng.shuffle(shards)
        buffer = []
        for shard in shards:
            for sample in self.parse(shard):
                buffer.append(sample)
                if len(buffer) > 48:
                    yield buffer.pop(rng.randrange(len(buffer)))
        rng.shuffle(buffer)
        yield from buffer


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = DataLoader(LogLines(range(12)), batch_size=32, num_workers=2, persistent_workers=True)
    test_loader = DataLoader(LogLines(range(100, 104)), batch_size=64)
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    seen = 0
    for epoch in range(3):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            seen += len(x)

    model.eval()
    hits = n = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += ((model(x) > 0) == (y > 0.5)).sum().item()
            n += len(y)
    print(f"{seen} samples seen, loss {loss.item():.4f}, test accuracy {hits / n:.4f}")
