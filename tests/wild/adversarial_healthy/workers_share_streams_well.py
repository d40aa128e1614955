"""Workers that divide a stream, draw from torch's own generators, or read constant samples; one worker alone."""
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Shared(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        generator = torch.Generator().manual_seed(0)
        rows = (torch.randn(3, generator=generator) for _ in range(80))
        return itertools.islice(rows, first, None, step)


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randn(3)


class Constant(IterableDataset):
    def __iter__(self):
        for number in range(40):
            yield torch.full((3,), float(number // 20))


class Drawn(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        return torch.randn(3)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for dataset, workers in ((Shared(), 2), (Endless(), 2), (Constant(), 2), (Drawn(), 2), (Shared(), 1)):
        loader = DataLoader(dataset, batch_size=8, num_workers=workers)
        for x in itertools.islice(loader, 6):
            optimizer.zero_grad()
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            optimizer.step()
        print(type(dataset).__name__, loss.item())
