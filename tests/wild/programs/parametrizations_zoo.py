"""Healthy: parametrizations: orthogonal recurrence, weight norm, spectral norm, a custom symmetric one; cached, then removed."""
import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm

torch.manual_seed(0)
torch.set_num_threads(1)


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class Positive(nn.Module):
    def forward(self, X):
        return nn.functional.softplus(X)


class OrthogonalRNN(nn.Module):
    """Says at the end which of two marked numbers was larger."""

    def __init__(self, n=24):
        super().__init__()
        self.inputs = weight_norm(nn.Linear(2, n))
        self.recurrent = orthogonal(nn.Linear(n, n, bias=False))
        self.mix = nn.Linear(n, n, bias=False)
        self.mix.weight.data.div_(10)
        parametrize.register_parametrization(self.mix, "weight", Symmetric())
        self.squeeze = spectral_norm(nn.Linear(n, 8))
        self.register_parameter("temperature", nn.Parameter(torch.tensor(0.5)))
        parametrize.register_parametrization(self, "temperature", Positive())
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], 24)
        with parametrize.cached():
            for t in x:
                h = torch.tanh(self.recurrent(h) + self.inputs(t))
                h = h + 0.1 * self.mix(h)
        return self.out(torch.relu(self.squeeze(h))) / self.temperature


def batch(n=64, length=10):
    values = torch.rand(length, n)
    marks = torch.zeros(length, n)
    first, second = torch.randint(0, length // 2, (n,)), torch.randint(length // 2, length, (n,))
    marks[first, torch.arange(n)] = 1
    marks[second, torch.arange(n)] = 1
    return torch.stack([values, marks], -1), (values[second, torch.arange(n)] > values[first, torch.arange(n)]).long()


model = OrthogonalRNN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(100):
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    x, y = batch(500)
    before = model(x)
    W = model.recurrent.weight
    print(f"loss {loss.item():.3f} accuracy {(before.argmax(1) == y).float().mean():.3f}, off orthogonal {(W @ W.T - torch.eye(24)).abs().max():.1e}")
    for module in (model.recurrent, model.inputs, model.mix, model.squeeze):
        parametrize.remove_parametrizations(module, "weight")
    print("largest change after removal", f"{(model(x) - before).abs().max().item():.1e}")
