"""Everything is a dataclass: the config, the (unhashable) data set, the sampler, the batch and the trainer."""
from __future__ import annotations

import dataclasses as dc
from typing import Iterator

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Sampler


@dc.dataclass
class Config:
    n: int = 400
    features: int = 6
    lr: float = 0.02
    epochs: int = 6


@dc.dataclass
class Sample:
    x: torch.Tensor
    y: torch.Tensor
    idx: int


@dc.dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    idx: list[int]

    @classmethod
    def collate(cls, samples: list[Sample]) -> Batch:
        return cls(torch.stack([s.x for s in samples]), torch.stack([s.y for s in samples]), [s.idx for s in samples])

    def __len__(self) -> int:
        return len(self.idx)


@dc.dataclass
class Points(Dataset):
    x: torch.Tensor
    y: torch.Tensor

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return Sample(self.x[i], self.y[i], int(i))


@dc.dataclass
class BlockSampler(Sampler):
    """Batches of indices: blocks of a permutation, the hardest samples twice."""

    n: int
    size: int
    weight: dict = dc.field(default_factory=dict)

    def __len__(self):
        return -(-self.n // self.size)

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(self.n).tolist()
        for k in range(0, self.n, self.size):
            block = order[k : k + self.size]
            yield block + sorted(block, key=lambda i: -self.weight.get(i, 0.0))[: len(block) // 4]


@dc.dataclass
class Trainer:
    net: nn.Module
    cfg: Config
    history: list = dc.field(default_factory=list)

    def fit(self, loader, sampler):
        opt = torch.optim.NAdam(self.net.parameters(), lr=self.cfg.lr)
        criterion = nn.SmoothL1Loss(reduction="none")
        for _ in range(self.cfg.epochs):
            total, count = 0.0, 0
            for batch in loader:
                each = criterion(self.net(batch.x).squeeze(-1), batch.y)
                opt.zero_grad()
                each.mean().backward()
                opt.step()
                sampler.weight.update(zip(batch.idx, each.tolist()))
                total, count = total + each.sum().item(), count + len(batch)
            self.history.append(total / count)
        return self


if __name__ == "__main__":
    torch.manual_seed(0)
    cfg = Config()
    x = torch.randn(cfg.n, cfg.features)
    data = Points(x, (x[:, 0] * x[:, 1]).tanh() + x[:, 2])
    sampler = BlockSampler(cfg.n, 40)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=Batch.collate)
    net = nn.Sequential(nn.Linear(cfg.features, 32), nn.GELU(), nn.Linear(32, 1))
    t = Trainer(net, cfg).fit(loader, sampler)
    print([round(v, 4) for v in t.history])
