"""Tools for the claims: the digits of scikit-learn, a small network, time and memory."""
# ruff: noqa: E501
import statistics
import time
import weakref

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

X, Y = (torch.tensor(a) for a in load_digits(return_X_y=True))
X, Y = ((X.float() - 4.88) / 6.02)[(order := torch.randperm(len(X), generator=torch.Generator().manual_seed(0)))], Y[order]


class Saved:
    """One tensor saved for backward; `alive` counts their bytes, without the parameters and the data."""
    def __init__(self, tensor):
        self.tensor = tensor


def alive(model, body):
    alive, own = weakref.WeakSet(), {p.untyped_storage().data_ptr() for p in model.parameters()} | {X.untyped_storage().data_ptr()}

    def pack(tensor):
        alive.add(saved := Saved(tensor.detach()))
        return saved
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        kept = body()
    held = {s.tensor.untyped_storage().data_ptr(): s.tensor.untyped_storage().nbytes() for s in alive}
    return sum(size for pointer, size in held.items() if pointer not in own) + 0 * (kept is None)


def mlp(*extra, wide=128):
    return nn.Sequential(nn.Linear(64, wide), nn.ReLU(), *extra, nn.Linear(wide, 10))


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def error(call):
    try:
        return f"no error, {call()!r:.60}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"


def fit(model, optimizer, epochs=5, zero=True, clip=None, loss_fn=cross_entropy, mode=True):
    """Train on 1,500 digits; return the accuracy on the other 297 and the largest gradient norm before clipping."""
    top = 0.0
    for _ in range(epochs):
        model.train(mode)
        for i in torch.randperm(1500).split(50):
            if zero:
                optimizer.zero_grad()
            loss_fn(model(X[i]), Y[i]).backward()
            top = max(top, float(nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf"))))
            optimizer.step()
    model.eval()
    return (model(X[1500:]).argmax(1) == Y[1500:]).float().mean().item(), top


def seconds(call, repeat=30):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def grads(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])
