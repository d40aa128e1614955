"""Everything that a second call could leave behind: counters, lists, prints, hooks, generators of the program's own."""

import numpy
import torch
from _state import tell
from torch import nn
from torch.utils.data import DataLoader, Dataset

calls, reads = 0, 0
history = []
generator = numpy.random.default_rng(4)


class Sequences(Dataset):
    def __init__(self):
        self.x = torch.randn(24, 5, 3)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        global reads
        reads += 1
        return self.x[index] + float(generator.normal()), int(self.x[index].sum() > 0)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.LSTM(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        global calls
        calls += 1
        history.append(float(x.sum()))
        print("called", len(history))
        return self.head(self.layer(x)[0][:, -1])


torch.manual_seed(6)
data, held_out, model = Sequences(), Sequences(), Network()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _epoch in range(2):
    model.train()
    for x, y in DataLoader(data, 8, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, _ in DataLoader(held_out, 8):
            print(repr(model(x).sum().item()))
print(calls, reads, history, generator.normal())
tell(model, optimizer)
