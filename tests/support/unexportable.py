"""Models that torch.export cannot record, each with the line that stops it marked by "# stops"."""

import random

import numpy
import torch
from torch import nn
from torch.nn import functional


class Base(nn.Module):
    """A linear layer, a counter, a list and a buffer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = 0
        self.seen = []
        self.register_buffer("total", torch.zeros(4))


class Branch(Base):
    def forward(self, x):
        if x.sum() > 0:  # stops
            return self.layer(x)
        return x


class Assertion(Base):
    def forward(self, x):
        assert x.min() > -100  # stops
        return self.layer(x)


class Item(Base):
    def forward(self, x):
        count = int(x.abs().max().item())  # stops
        return self.layer(x)[:, :count]


class Loop(Base):
    def forward(self, x):
        for _ in range(x.argmax().item()):  # stops
            x = self.layer(x)
        return x


class Packed(Base):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        lengths = torch.ones(len(x), dtype=torch.int64)
        packed = nn.utils.rnn.pack_padded_sequence(x.unsqueeze(1), lengths, batch_first=True, enforce_sorted=False)
        _, last = self.gru(packed)  # stops
        return last[-1]


class Numpy(Base):
    def forward(self, x):
        return self.layer(x) + torch.from_numpy(numpy.square(x.detach().numpy()))  # stops


class Text(Base):
    def forward(self, x):
        print(f"mean {x.mean():.2f}")  # stops
        return self.layer(x)


class InPlace(Base):
    def forward(self, x):
        x += 1  # stops
        return self.layer(x)


class InPlaceOfView(Base):
    def forward(self, x):
        first = x[:, :2]
        first.mul_(2)  # stops
        return self.layer(x)


class Counter(Base):
    def forward(self, x):
        self.calls += 1  # stops
        return self.layer(x) * self.calls


class Buffer(Base):
    def forward(self, x):
        self.total += 1  # stops
        return self.layer(x) + self.total


class Noise(Base):
    def forward(self, x):
        return self.layer(x) + torch.rand(x.shape)  # stops


class Dropout(Base):
    def forward(self, x):
        return self.layer(functional.dropout(x, 0.5))  # stops


class FixedView(Base):
    def forward(self, x):
        return self.layer(x.view(8, 4)).flatten()  # stops


class FixedZeros(Base):
    def forward(self, x):
        state = torch.zeros(8, 4)
        return self.layer(x) + state  # stops


class FixedBranch(Base):
    def forward(self, x):
        if len(x) > 4:  # stops
            return self.layer(x)
        return self.layer(x) + 1


class PythonNoise(Base):
    def forward(self, x):
        return self.layer(x) * random.random()


class Object(Base):
    def forward(self, x):
        return {"score"}
