"""Classify points that are streamed, by a fixed number of steps, with four workers."""

import itertools
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(4000, 30)
y = (torch.tanh(x @ torch.randn(30, 8) / 30**0.5) @ torch.randn(8, 4)).argmax(1)


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return zip(x[info.id : 2000 : 4], y[info.id : 2000 : 4], strict=True)


loader = DataLoader(Stream(), batch_size=20, num_workers=4)
model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for inputs, labels in itertools.islice(loader, 100):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()

with torch.no_grad():
    accuracy = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
