"""Workers of a stream connect to their shards again in every epoch; an evaluation without workers lies between."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, get_worker_info

torch.set_num_threads(1)
generator = torch.Generator().manual_seed(3)
x = torch.randn(160, 5, generator=generator)
y = x @ torch.randn(5, 1, generator=generator)


class Shards(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        time.sleep(0.6)  # connects
        for index in torch.randperm(128)[worker.id :: worker.num_workers].tolist():
            yield x[index], y[index]


def make_loaders():
    train = DataLoader(Shards(), batch_size=16, num_workers=2)  # error: workers-respawned
    return train, DataLoader(TensorDataset(x[128:], y[128:]), batch_size=16)


train, valid = make_loaders()
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(12):
    model.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum(nn.functional.mse_loss(model(a), b).item() for a, b in valid))
