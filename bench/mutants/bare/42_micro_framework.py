"""Layers as plain classes, in the spirit of torch.nn but without it."""
import torch
from sklearn.datasets import load_digits


class Linear:
    def __init__(self, n_in, n_out, bias=True):
        self.weight = torch.randn((n_in, n_out), generator=g) / n_in ** 0.5
        self.bias = torch.zeros(n_out) if bias else None

    def __call__(self, x):
        self.out = x @ self.weight
        if self.bias is not None:
            self.out = self.out + self.bias
        return self.out

    def parameters(self):
        return [self.weight] + ([] if self.bias is None else [self.bias])


class BatchNorm1d:
    def __init__(self, dim, eps=1e-5, momentum=0.1):
        self.eps, self.momentum, self.training = eps, momentum, True
        self.gamma, self.beta = torch.ones(dim), torch.zeros(dim)
        self.running_mean, self.running_var = torch.zeros(dim), torch.ones(dim)

    def __call__(self, x):
        if self.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
            with torch.no_grad():
                self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean
                self.running_var = (1 - self.momentum) * self.running_var + self.momentum * x.var(0)
        else:
            mean, var = self.running_mean, self.running_var
        self.out = self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta
        return self.out

    def parameters(self):
        return [self.gamma, self.beta]


class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x)
        return self.out

    def parameters(self):
        return []


g = torch.Generator().manual_seed(2147483647)
d = load_digits()
X, Y = torch.tensor(d.data).float() / 16, torch.tensor(d.target)
perm = torch.randperm(len(X), generator=g)
Xtr, Ytr, Xte, Yte = X[perm[:1400]], Y[perm[:1400]], X[perm[1400:]], Y[perm[1400:]]

layers = [Linear(64, 50, bias=False), BatchNorm1d(50), Tanh(),
          Linear(50, 50, bias=False), BatchNorm1d(50), Tanh(), Linear(50, 10)]
with torch.no_grad():
    layers[-1].weight *= 0.1
parameters = [p for layer in layers for p in layer.parameters()]
for p in parameters:
    p.requires_grad = True

for i in range(600):
    ix = torch.randint(0, len(Xtr), (32,), generator=g)
    x = Xtr[ix]
    for layer in layers:
        x = layer(x)
    loss = torch.nn.functional.cross_entropy(x, Ytr[ix])
    for p in parameters:
        p.grad = None
    loss.backward()
    lr = 0.2 if i < 400 else 0.02
    for p in parameters:
        p.data -= lr * p.grad
    if i % 150 == 0:
        print(f'{i:4d} {loss.item():.4f}')

for layer in layers:
    layer.training = False
with torch.no_grad():
    x = Xte
    for layer in layers:
        x = layer(x)
    print('test accuracy', round((x.argmax(1) == Yte).float().mean().item(), 3))
