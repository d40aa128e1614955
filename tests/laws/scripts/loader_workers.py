import random

import numpy
import torch
from _state import tell
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler


class Jitter(nn.Module):
    def forward(self, x):
        return x + 0.1 * torch.randn_like(x)


class Points(Dataset):
    def __init__(self):
        self.jitter = Jitter()
        self.x = torch.randn(48, 4)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        x = self.jitter(self.x[index]) * random.choice((-1, 1)) + float(numpy.random.normal())
        return x, int(self.x[index].sum() > 0)


def main():
    torch.manual_seed(11)
    numpy.random.seed(11)
    random.seed(11)
    data = Points()
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    sampler = WeightedRandomSampler(torch.rand(48), 48)
    for loader in (
        DataLoader(data, 8, shuffle=True, num_workers=2, worker_init_fn=lambda i: numpy.random.seed(100 + i)),
        DataLoader(data, 8, sampler=sampler, drop_last=True),
        DataLoader(data, 12, shuffle=True, num_workers=2, persistent_workers=True),
    ):
        for epoch in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                print(epoch, repr(loss.item()), repr(x.sum().item()))
    iterator = iter(DataLoader(data, 8, shuffle=True))
    print(repr(next(iterator)[0].sum().item()), len(iterator))
    tell(model, optimizer)


if __name__ == "__main__":
    main()
