"""Quantisation-aware training: fake quantisation by straight-through estimators, moving-average observers in train mode only."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, bits):
        limit = 2 ** (bits - 1) - 1
        ctx.save_for_backward((x / scale).abs() <= limit)
        return (x / scale).round().clamp(-limit, limit) * scale

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None


class Observer(nn.Module):
    def __init__(self, bits, momentum=0.1):
        super().__init__()
        self.bits, self.momentum = bits, momentum
        self.register_buffer("peak", torch.tensor(0.0))

    def forward(self, x):
        if self.training:
            now = x.detach().abs().max()
            self.peak.copy_(now if self.peak == 0 else self.peak + self.momentum * (now - self.peak))
        scale = self.peak.clamp(min=1e-6) / (2 ** (self.bits - 1) - 1)
        return FakeQuantize.apply(x, scale, self.bits)


class QuantLinear(nn.Linear):
    def __init__(self, fan_in, fan_out, bits=4):
        super().__init__(fan_in, fan_out)
        self.bits = bits
        self.activation = Observer(8)

    def forward(self, x):
        scale = self.weight.detach().abs().amax(1, keepdim=True).clamp(min=1e-6) / (2 ** (self.bits - 1) - 1)
        return F.linear(self.activation(x), FakeQuantize.apply(self.weight, scale, self.bits), self.bias)


def accuracy(model, loader):
    model.eval()
    hits = total = 0
    with torch.inference_mode():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    return hits / total


def main():
    torch.manual_seed(0)
    bunch = load_digits()
    x, y = torch.tensor(bunch.data, dtype=torch.float32) / 16, torch.tensor(bunch.target)
    order = torch.randperm(len(x))
    train = DataLoader(TensorDataset(x[order[:1400]], y[order[:1400]]), batch_size=70, shuffle=True)
    test = DataLoader(TensorDataset(x[order[1400:]], y[order[1400:]]), batch_size=200)
    model = nn.Sequential(QuantLinear(64, 64), nn.ReLU(), QuantLinear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        model.train()
        for xb, yb in train:
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy(model, test):.3f}")


main()
