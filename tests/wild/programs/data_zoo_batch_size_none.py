"""Loaders of many kinds: batch_size=None, StackDataset, ChainDataset, ConcatDataset, weighted sampling, custom BatchSampler, prefetch in workers."""
import torch
from torch import nn
from torch.utils.data import (BatchSampler, ChainDataset, ConcatDataset, DataLoader, Dataset, IterableDataset, RandomSampler,
                              StackDataset, Subset, TensorDataset, WeightedRandomSampler, default_collate, random_split)


class Slices(Dataset):
    """Indexed by a list of indices at once: the sampler makes the batches, no collating."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]

    def __getitems__(self, indices):
        i = torch.tensor(indices)
        return list(zip(self.x[i], self.y[i]))


class Stream(IterableDataset):
    def __init__(self, seed, n):
        self.seed, self.n = seed, n

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in range(self.n):
            x = torch.randn(4, generator=g)
            yield {"inputs": x, "labels": int(x[0] > x[1])}


def points(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g)
    return x, (x[:, 0] > x[:, 1]).long()


torch.manual_seed(0)
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.2)


def step(x, y):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss.item()


x, y = points(200, 1)
slices = Slices(x, y)
sampler = BatchSampler(RandomSampler(slices), 20, drop_last=False)
losses = [step(a, b) for _ in range(2) for a, b in DataLoader(slices, sampler=sampler, batch_size=None)]
print("slices", round(losses[0], 4), round(losses[-1], 4))
losses = [step(a, b) for _ in range(2) for a, b in DataLoader(slices, batch_size=25, shuffle=True)]
print("getitems", round(losses[-1], 4))
stack = StackDataset(pixels=TensorDataset(x), target=y.tolist())
losses = [step(b["pixels"][0], b["target"]) for b in DataLoader(stack, batch_size=20, shuffle=True, collate_fn=default_collate)]
print("stack", round(losses[-1], 4))
chain = ChainDataset([Stream(3, 60), Stream(4, 40)])
losses = [step(b["inputs"], b["labels"]) for b in DataLoader(chain, batch_size=10)]
print("chain", round(losses[-1], 4))
rare = torch.where(y == 0, 0.2, 0.8)
joined = ConcatDataset([TensorDataset(x, y), Subset(TensorDataset(*points(80, 2)), range(40))])
weights = torch.cat([rare, torch.full((40,), 0.5)])
loader = DataLoader(joined, 16, sampler=WeightedRandomSampler(weights, 120, generator=torch.Generator().manual_seed(5)))
losses = [step(a, b) for _ in range(2) for a, b in loader]
print("weighted", round(losses[-1], 4))
train, valid = random_split(TensorDataset(*points(300, 7)), [0.8, 0.2])
loader = DataLoader(train, 30, shuffle=True, num_workers=2, prefetch_factor=3, drop_last=True, multiprocessing_context="fork")
for epoch in range(2):
    losses = [step(a, b) for a, b in loader]
    net.eval()
    with torch.no_grad():
        hits = torch.cat([net(a).argmax(1) == b for a, b in DataLoader(valid, batch_size=len(valid))])
    net.train()
    print("split", epoch, round(losses[-1], 4), round(hits.float().mean().item(), 3))
it = iter(DataLoader(Slices(x, y), batch_sampler=[[0, 1, 2], list(range(50, 90)), [7]]))
print("fixed batches", [len(b) for _, b in it])
