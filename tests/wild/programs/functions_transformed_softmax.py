"""Softmax regression in functional style: new weights each step, nothing in place."""
from typing import NamedTuple

import torch
from sklearn.datasets import load_iris
from torch.func import grad_and_value


class Weights(NamedTuple):
    w: torch.Tensor
    b: torch.Tensor


def predict(weights, x):
    return x @ weights.w + weights.b


def loss_fn(weights, x, y):
    logp = torch.log_softmax(predict(Weights(*weights), x), dim=1)
    return -logp.gather(1, y[:, None]).mean() + 1e-3 * (weights[0] ** 2).sum()


def update(weights, x, y, lr):
    grads, value = grad_and_value(loss_fn)(tuple(weights), x, y)
    return Weights(*(p - lr * g for p, g in zip(weights, grads))), value


iris = load_iris()
x = torch.tensor(iris.data, dtype=torch.float32)
y = torch.tensor(iris.target)
g = torch.Generator().manual_seed(3)
perm = torch.randperm(150, generator=g)
train, test = perm[:105], perm[105:]
mu, sigma = x[train].mean(0), x[train].std(0)
x = (x - mu) / sigma

weights = Weights(torch.zeros(4, 3), torch.zeros(3))
for step in range(300):
    weights, value = update(weights, x[train], y[train], 0.5)
    if step % 100 == 0:
        print(f"step {step:3d} loss {value:.4f}")

for name, idx in (("train", train), ("test", test)):
    acc = (predict(weights, x[idx]).argmax(1) == y[idx]).float().mean()
    print(f"{name} accuracy {acc:.3f}")
