"""Models in uncommon styles that torch.export records correctly."""

from dataclasses import dataclass

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Base(nn.Module):
    """A linear layer, a norm and a list."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.seen = []


class Scalar(Base):
    def forward(self, x):
        return self.layer(x) / x.abs().max().item()


class LocalList(Base):
    def forward(self, x):
        parts = []
        for number in range(3):
            parts.append(self.layer(x) * number)  # noqa: PERF401
        return torch.stack(parts, 1)


class Remembered(Base):
    """No output depends on the list."""

    def forward(self, x):
        self.seen.append(x.mean())
        return self.layer(x)


class Printed(Base):
    def forward(self, x):
        print("called")
        return self.layer(x)


class Nested(Base):
    def forward(self, x):
        y = self.layer(x)
        return {"logits": y, "hidden": [x * 2, (y, y + 1)]}


@dataclass
class Result:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class DataClass(Base):
    def forward(self, x):
        return Result(self.layer(x))


class WithNumber(Base):
    """The number is left out, with a note."""

    def forward(self, x):
        return self.layer(x), x.sum().item()


class KeywordOnly(Base):
    def forward(self, *, x):
        return self.layer(x)


class KeywordBeside(Base):
    def forward(self, x, *, scale=2.0):
        return self.layer(x) * scale


class AlwaysTrain(Base):
    """Normalises by the batch also in eval mode: eager refuses one sample."""

    def forward(self, x):
        self.norm.train()
        return self.norm(self.layer(x))


class BatchStatistics(Base):
    def forward(self, x):
        return functional.batch_norm(self.layer(x), None, None, training=True)


class OutOfRange(Base):
    """Eager refuses one sample: its number in the table is -1."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 4)

    def forward(self, x):
        return self.layer(x) + self.table(torch.arange(x.shape[0]) + x.shape[0] - 2)


class TrainNoise(Base):
    def forward(self, x):
        return self.layer(x + torch.randn_like(x) if self.training else x)


class PlainList(Base):
    """For torch, the layers are outside of the model."""

    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(4, 4), nn.Linear(4, 4)]

    def forward(self, x):
        for layer in self.hidden:
            x = layer(x).relu()
        return self.layer(x)


class Autocast(Base):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.layer(x)
        return y.float()


class NoGrad(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.layer(x)
        with torch.inference_mode():
            y = self.norm(y)
        return self.layer(y)


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class StraightThrough(Base):
    def forward(self, x):
        return Round.apply(self.layer(x) * 10)


class NumpyConstant(Base):
    def forward(self, x):
        return self.layer(x) * numpy.float32(0.5) + torch.from_numpy(numpy.arange(4, dtype=numpy.float32))


class LastState(Base):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x.unsqueeze(1))[1][0][-1]


class Masked(Base):
    def forward(self, x):
        y = self.layer(x).clone()
        y[y > 0] = 1
        return y


class Selected(Base):
    """The number of rows of the output depends on values."""

    def forward(self, x):
        return self.layer(x[x[:, 0] > 0])


class Condition(Base):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (self.layer(x),))


class Checkpointed(Base):
    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=False)


class Normalised(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.utils.parametrizations.weight_norm(self.layer)
        self.second = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))

    def forward(self, x):
        return self.second(self.layer(x))


class Hooked(Base):
    def __init__(self):
        super().__init__()
        self.layer.register_forward_hook(lambda module, inputs, output: output * 2)

    def forward(self, x):
        return self.layer(x)


class ShapeOfSizes(Base):
    def forward(self, x):
        return self.layer(x).view(x.size(0), 2, 2).flatten(1).expand(x.shape[0], -1)


class ManyInputs(Base):
    def forward(self, *parts, **options):
        return self.layer(parts[0])


class ReturnsInput(Base):
    def forward(self, x):
        return {"x": x, "y": self.layer(x)}


class NoRunningStatistics(Base):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4, track_running_stats=False)

    def forward(self, x):
        return self.norm(self.layer(x))


class KeepsOutput(Base):
    """The output has a graph, and the model keeps it."""

    def forward(self, x):
        with torch.enable_grad():
            self.last = self.layer(x)
        return self.last
