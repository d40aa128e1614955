import gzip
import os

import numpy as np
import torch
import torch.nn.functional as F

ROOT = os.path.join(os.environ["TRUESTEP_DATA"], "fashion-mnist")


def load(kind, n):
    with gzip.open(f"{ROOT}/{kind}-images-idx3-ubyte.gz") as f:
        x = np.frombuffer(f.read(16 + 784 * n)[16:], dtype=np.uint8).reshape(n, 784)
    with gzip.open(f"{ROOT}/{kind}-labels-idx1-ubyte.gz") as f:
        y = np.frombuffer(f.read(8 + n)[8:], dtype=np.uint8)
    return torch.tensor(x, dtype=torch.float32) / 255, torch.tensor(y, dtype=torch.long)


def init_params(sizes):
    params = {}
    for i, (m, n) in enumerate(zip(sizes[:-1], sizes[1:])):
        params[f"w{i}"] = torch.empty(m, n).normal_(0, (2 / m) ** 0.5).requires_grad_()
        params[f"b{i}"] = torch.zeros(n, requires_grad=True)
    return params


def mlp(params, x):
    n_layers = len(params) // 2
    for i in range(n_layers):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        if i < n_layers - 1:
            x = F.relu(x)
    return x


def accuracy(params, x, y):
    with torch.no_grad():
        return (mlp(params, x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(0)
    x_train, y_train = load("train", 8000)
    x_test, y_test = load("t10k", 2000)
    mean, std = x_train.mean(), x_train.std()
    x_train, x_test = (x_train - mean) / std, (x_test - mean) / std

    params = init_params([784, 64, 32, 10])
    optimizer = torch.optim.SGD(params.values(), lr=0.05, momentum=0.9)
    for epoch in range(4):
        perm = torch.randperm(len(x_train))
        running = 0.0
        for start in range(0, len(perm), 100):
            idx = perm[start:start + 100]
            loss = F.cross_entropy(mlp(params, x_train[idx]), y_train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        print(f"epoch {epoch}: loss {running / len(perm):.4f} "
              f"train acc {accuracy(params, x_train, y_train):.3f} "
              f"test acc {accuracy(params, x_test, y_test):.3f}")


if __name__ == "__main__":
    main()
