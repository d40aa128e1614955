"""Models that torch.export cannot record, each with the line that stops it marked by "# stops"."""

import itertools
import random
import warnings

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
        return self.layer(x) * random.random()  # stops


class Object(Base):
    def forward(self, x):
        return {"score"}


class Float(Base):
    def forward(self, x):
        return self.layer(x) / float(x.abs().max())  # stops


class Flag(Base):
    def forward(self, x):
        flag = bool(x.sum() > 0)  # stops
        return self.layer(x) * flag


class Ternary(Base):
    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else x  # stops


class Until(Base):
    def forward(self, x):
        while x.abs().max() > 1:  # stops
            x = x / 2
        return self.layer(x)


class Compared(Base):
    def forward(self, x):
        if torch.equal(x, x.relu()):  # stops
            return self.layer(x)
        return x


class NotANumber(Base):
    def forward(self, x):
        if torch.isnan(x).any():  # stops
            raise ValueError("nan")
        return self.layer(x)


class FromValues(Base):
    def forward(self, x):
        return self.layer(x) + torch.tensor([part.sum() for part in (x, x + 1)]).sum()  # stops


class Appended(Base):
    def forward(self, x):
        self.seen.append(x.mean())  # stops
        return self.layer(x) + torch.stack(self.seen).sum()


class Recurrent(Base):
    """The state is that of the call before, with its batch: not a size is to be blamed, but the attribute."""

    def __init__(self):
        super().__init__()
        self.rnn, self.state = nn.LSTM(4, 4, batch_first=True), None

    def forward(self, x):
        out, self.state = self.rnn(x.unsqueeze(1), self.state)  # stops
        return out[:, -1]


class InPlaceOfPart(Base):
    def forward(self, x):
        x[:, 0] = 0  # stops
        return self.layer(x)


class InPlaceLayer(Base):
    def __init__(self):
        super().__init__()
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.layer(self.activation(x))  # stops


class Sampled(Base):
    def forward(self, x):
        return self.layer(x).softmax(-1).multinomial(1)  # stops


class Generator(Base):
    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x):
        return self.layer(x) + torch.rand(x.shape, generator=self.generator)  # stops


class Distribution(Base):
    def forward(self, x):
        return torch.distributions.Normal(self.layer(x), 1.0, validate_args=True).sample()  # stops


class New(Base):
    def forward(self, x):
        return nn.Linear(4, 4)(self.layer(x))  # stops


class DroppedAttention(Base):
    def forward(self, x):
        query = self.layer(x).reshape(-1, 1, 1, 4)
        return functional.scaled_dot_product_attention(query, query, query, dropout_p=0.1).flatten(1)  # stops


class NumpyFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(numpy.sin(x.detach().numpy()))  # stops

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class NumpyInFunction(Base):
    def forward(self, x):
        return NumpyFunction.apply(self.layer(x))


class Gradient(Base):
    def forward(self, x):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            energy = self.layer(x).square().sum()
            return torch.autograd.grad(energy, x)[0]  # stops


class Backward(Base):
    def forward(self, x):
        x = x.clone().requires_grad_()
        with torch.enable_grad():
            self.layer(x).sum().backward()  # stops
        return x.grad


class Data(Base):
    def forward(self, x):
        return functional.linear(x, self.layer.weight.data)  # stops


class FirstToken(Base):
    """The token of a vision transformer, expanded by a number of Python."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(1, 1, 4))

    def forward(self, x):
        return torch.cat([self.first.expand(len(x), -1, -1), self.layer(x).unsqueeze(1)], 1)  # stops


class Rows(Base):
    def forward(self, x):
        last = torch.zeros(4)
        for row in x:  # stops
            last = self.layer(row) + last
        return last


class NumberedRows(Base):
    def forward(self, x):
        return torch.stack([self.layer(x[i]) for i in range(x.shape[0])])  # stops


class ManyLayers(Base):
    """The loop is over layers: the shape is to be blamed."""

    def forward(self, x):
        return torch.cat([layer(x.view(8, 4)) for layer in (self.layer, self.layer)])  # stops


class LargeBatch(Base):
    def forward(self, x):
        if x.shape[0] > 4:  # stops
            return self.layer(x)
        return self.layer(x) + 1


class OneSample(Base):
    """A graph that assumes sizes above 1 has no branch."""

    def forward(self, x):
        y = self.layer(x)
        return y if x.size(0) != 1 else y.squeeze(0)  # stops


class FixedState(Base):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        state = torch.zeros(1, 8, 4), torch.zeros(1, 8, 4)
        return self.rnn(x.unsqueeze(1), state)[0][:, -1]  # stops


class Cached(Base):
    def __init__(self):
        super().__init__()
        self.masks = {}

    def forward(self, x):
        if len(x) not in self.masks:  # stops
            self.masks[len(x)] = torch.ones(len(x), 1)
        return self.layer(x) * self.masks[len(x)]


class Sparse(Base):
    def forward(self, x):
        return self.layer(x).to_sparse()


class Scripted(Base):
    def __init__(self):
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.inner = torch.jit.script(nn.Linear(4, 4))

    def forward(self, x):
        return self.inner(x)  # stops


class OfTheWorld(Base):
    numbers = itertools.count(1)

    def forward(self, x):
        return self.layer(x) * next(self.numbers)
