"""Claims about the graph, memory, gradients on or off, and errors of PyTorch."""
# ruff: noqa: E501
import io
import warnings

import numpy as np
import torch
from claims_kit import X, Y, alive, error, mlp, rss, seconds
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.optim import SGD


def no_grad_missing():
    model, batches = mlp(), [(X[i:i + 50], Y[i:i + 50]) for i in range(0, 1500, 50)]
    def validate(keep):
        kept = []
        for x, y in batches:
            kept = [*kept, cross_entropy(model(x), y)] if keep else [cross_entropy(model(x), y).item()]
        return kept
    freed, kept = (alive(model, lambda keep=keep: validate(keep)) for keep in (False, True))
    with torch.no_grad():
        equal = torch.equal(model(X), model(X).detach())
    return f"alive after 30 batches: {freed} B, with the losses kept {kept / 30 / 1024:.0f} KiB a batch; values equal {equal}"


def loss_kept():
    model, out = mlp(), []
    for keep in (lambda loss: loss, lambda loss: loss.item(), lambda loss: print(loss, file=io.StringIO())):
        def run(steps, keep=keep):
            kept = []
            for _ in range(steps):
                loss = cross_entropy(model(X[:50]), Y[:50])
                loss.backward()
                kept.append(keep(loss))
            return kept
        run(50)
        before = rss()
        held = run(4000)
        out.append(f"{(rss() - before) / len(held) / 1024:.1f} KiB")
    return f"a step: loss kept {out[0]}, item kept {out[1]}, printed {out[2]}; activations after backward " + str(
        alive(model, lambda: cross_entropy(model(X[:50]), Y[:50]).backward()))


def retain_graph():
    model = mlp()
    def run(steps, retain):
        for _ in range(steps):
            loss = cross_entropy(model(X[:50]), Y[:50])
            loss.backward(retain_graph=retain)
        return loss
    held = [alive(model, lambda n=n, keep=keep: run(n, keep)) / 1024 for n, keep in ((10, True), (100, True), (10, False))]
    return f"alive with it after 10 steps {held[0]:.0f} KiB, after 100 steps {held[1]:.0f} KiB; without it {held[2]:.0f} KiB"


def dtypes_mixed():
    a, b = torch.ones(2), torch.ones(2, dtype=torch.float64)
    return (f"add {(a + b).dtype}, mse_loss {mse_loss(a, b).dtype}, matmul {error(lambda: a @ b)}; tensor([1.0]) "
            f"{torch.tensor([1.0]).dtype}, from numpy {torch.tensor(np.array([1.0])).dtype}")


def numpy_shares_memory():
    tensor = torch.from_numpy(array := np.array([1.0, 2.0]))
    array[0] = 99.0
    return f"{tensor[0]!r}"


def backward_twice():
    x = torch.ones(3, requires_grad=True)
    exp, total = x.exp().sum(), x.sum()
    exp.backward(), total.backward()
    return f"exp: {error(exp.backward)}; sum: {error(total.backward)}, gradient {x.grad[0]:.2f} for {2.718 + 1:.2f}"


def graph_surprises():
    x = torch.randn(3, requires_grad=True)
    s = x.sigmoid()
    s.add_(1)
    y = x.sigmoid()
    right, = torch.autograd.grad(x.sigmoid().sum(), x)
    y.data.add_(1)
    y.sum().backward()
    model = mlp()
    loss = torch.tensor(cross_entropy(model(X), Y).item(), requires_grad=True)
    loss.backward()
    z = x.sigmoid()
    z.detach().add_(1)
    return (f"in place: {error(s.sum().backward)}; detach and write: {error(z.sum().backward)}; .data: gradient {x.grad[0]:.3f} for "
            f"{right[0]:.3f}; relu_: {error(lambda: nn.Linear(3, 3)(x).relu_().sum().backward())}; item: "
            f"{error(lambda: cross_entropy(model(X), Y).item().backward())}; wrapped item: parameters' grad {model[0].weight.grad}")


def errors_already():
    with torch.inference_mode():
        inside = torch.ones(2)
    with torch.no_grad():
        loss = cross_entropy(mlp()(X), Y)
    def no_super():
        class Model(nn.Module):
            def __init__(self):
                self.layer = nn.Linear(1, 1)
        return Model()
    calls = {"vector loss": torch.ones(2, requires_grad=True).exp().backward, "training in no_grad": loss.backward,
             "inference tensor": lambda: (inside * torch.ones(2, requires_grad=True)).sum().backward(), "no super().__init__": no_super,
             "integer input": lambda: nn.Linear(2, 1)(torch.tensor([1, 2])),
             "gradcheck in float32": lambda: torch.autograd.gradcheck(mlp(), (X[:2].clone().requires_grad_(),))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "; ".join(f"{name}: {error(call)}" for name, call in calls.items())


def frozen_and_hooks():
    layer, calls = nn.Linear(2, 1).requires_grad_(False), []
    layer.register_forward_hook(lambda *_: calls.append(1))
    layer.forward(torch.ones(2))
    direct = len(calls)
    layer(torch.ones(2))
    dropout = nn.Dropout(0.5).eval()
    return (f"parameters() of a frozen layer: {len(list(layer.parameters()))}; hooks run by forward {direct}, by call {len(calls)}; "
            f"forward keeps eval mode {torch.equal(dropout.forward(X), X)}")


def gradients_on_inputs():
    x, model = X.clone().requires_grad_(), mlp()
    cross_entropy(model(x), Y).backward()
    plain, tracked = (seconds(lambda v=v: cross_entropy(model(v), Y).backward()) for v in (X, x))
    return f"input.grad {x.grad.nbytes / 1024:.0f} KiB, step {tracked / plain - 1:+.0%}"


def not_a_number():
    p = torch.tensor([0.0, 1.0], requires_grad=True)
    (p.log() * torch.tensor([0.0, 1.0])).sum().backward()
    model, losses = mlp(), []
    optimizer = SGD(model.parameters(), lr=1e3)
    for _ in range(50):
        optimizer.zero_grad()
        losses.append(mse_loss(model(X), torch.eye(10)[Y]))
        losses[-1].backward()
        optimizer.step()
    return f"gradient of 0 * log(0): {p.grad.tolist()}; mean squared error with lr 1000: {losses[1].item():.1e}, finite after 50 steps {losses[-1].isfinite().item()}"


def order_of_the_switches():
    model, out = mlp(nn.Dropout(0.5)), []
    model.eval()
    with torch.no_grad():
        out.append(model(X))
    model.train()
    with torch.no_grad():
        model.eval()
        out.append(model(X))
    return f"eval before or inside no_grad, equal: {torch.equal(*out)}"


def no_grad_and_inference_mode():
    out = []
    for wide, batch in ((32, 8), (1024, 256)):
        model, x = mlp(wide=wide), X[:batch]
        def run(context, model=model, x=x):
            with context():
                model(x)
        grad, none, inference = (seconds(lambda c=c: run(c), 400) for c in (torch.enable_grad, torch.no_grad, torch.inference_mode))
        out.append(f"width {wide}: no_grad {1 - none / grad:.0%} less than grad, inference_mode {1 - inference / none:.0%} less than no_grad")
    layers = [alive(m := nn.Sequential(*[nn.Linear(64, 64), nn.ReLU()] * n), lambda m=m: m(X)) / X.nbytes for n in (2, 12)]
    return "; ".join(out) + f"; saved for backward, in inputs: 2 layers {layers[0]:.0f}, 12 layers {layers[1]:.0f}; no_grad 0"
