"""Healthy: weights of `torch.empty` are written after a first call or pass, by a first batch, or by a helper."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)


class Layer(nn.Module):
    def __init__(self, inputs, outputs, by_data=False):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.waits = by_data

    def first(self, x):
        self.waits = False
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.1 / x.std())

    def forward(self, x):
        if self.waits:
            self.first(x)
        return nn.functional.linear(x, self.weight, self.bias)


def fill_memory():
    for shape in ((64, 64), (10, 64), (64,), (10,)):
        values = [torch.randn(*shape) * 3 for _ in range(40)]
        del values


def start(module):
    for parameter in module.parameters(recurse=False):
        nn.init.normal_(parameter, 0, 0.1)


def make(by_data=False):
    fill_memory()
    return nn.Sequential(Layer(64, 64, by_data), nn.ReLU(), Layer(64, 10, by_data))


def train(net):
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for rows in torch.randperm(1200).split(64):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


called = make()
print(called(x[:2]).shape)
called.apply(start)
train(called)

measured = make()
measured(x[:2]).square().mean().backward()  # what memory does a pass need?
measured.zero_grad()
measured.load_state_dict({name: torch.randn_like(value) * 0.1 for name, value in measured.state_dict().items()})
train(measured)

train(make(by_data=True))

again = make()
again.apply(start)
for layer in (again[0], again[2]):
    for name, parameter in list(layer.named_parameters()):
        delattr(layer, name)
        layer.register_parameter(name, nn.Parameter(parameter.detach().clone()))
train(again)
