"""Measure the claims of what-breaks.md here: `python docs/explanation/claims.py [NAME ...]` prints one figure for each.

This file has the order of the loop, the modes and the loss; the other files have the rest. Claims with names
that begin with "slow_" run only if named. Times are those of one thread (OMP_NUM_THREADS=1).
"""
# ruff: noqa: E501
import statistics
import sys
from itertools import pairwise

import torch
from claims_kit import X, Y, error, fit, mlp
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, AdamW, lr_scheduler


def cast_after_optimizer():
    model, out = nn.Linear(4, 4), []
    for target in ("cpu", torch.float64, torch.float16, "meta"):
        before = model.weight
        out.append(f"{target}: same object {model.to(target).weight is before}")
    model = nn.Linear(4, 4)
    optimizer = Adam(model.parameters())
    for cast in (lambda: None, model.double):
        cast()
        model(torch.ones(1, 4, dtype=model.weight.dtype)).sum().backward()
        out.append(error(optimizer.step))
    return "; ".join(out)


def zero_grad_after_backward():
    out = []
    for make, none in ((SGD, True), (lambda p, lr: AdamW(p, lr), True), (lambda p, lr: AdamW(p, lr), False)):
        model = mlp()
        before, optimizer = model[0].weight.detach().clone(), make(model.parameters(), lr=0.1)
        for i in range(20):
            cross_entropy(model(X[i:i + 50]), Y[i:i + 50]).backward()
            optimizer.zero_grad(set_to_none=none)
            optimizer.step()
        out.append(f"{type(optimizer).__name__} set_to_none={none}: {(model[0].weight - before).abs().max():.4f}")
    return "weights moved in 20 steps: " + ", ".join(out)


def clip_in_the_wrong_place():
    def run(place, zero="start"):
        torch.manual_seed(0)
        model = mlp()
        optimizer, norms = SGD(model.parameters(), lr=0.1), []
        def clip(here):
            if here == place:
                norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.1)))
        for i in range(20):
            if zero == "start":
                optimizer.zero_grad()
            clip("before backward")
            if zero == "after clip":
                optimizer.zero_grad()
            cross_entropy(model(X[50 * i:50 * i + 50]), Y[50 * i:50 * i + 50]).backward()
            clip("right")
            optimizer.step()
            clip("after step")
        return model[0].weight.detach(), norms
    plain = run(None)[0]
    same = {place: torch.equal(plain, run(place)[0]) for place in ("before backward", "after step", "right")}
    return (f"bit-identical to no clipping: {same}; norms clipped before backward {max(run('before backward')[1])}, and stale "
            f"{max(run('before backward', 'after clip')[1]):.2f}; after step without zero_grad identical: "
            f"{torch.equal(run(None, None)[0], run('after step', None)[0])}")


def scheduler_per_batch():
    out = []
    for make in (lambda o: lr_scheduler.CosineAnnealingLR(o, 100), lambda o: lr_scheduler.StepLR(o, 30)):
        scheduler = make(optimizer := SGD([nn.Parameter(torch.ones(1))], lr=0.1))
        lrs = []
        for _ in range(100 * 32):
            optimizer.step()
            scheduler.step()
            lrs.append(scheduler.get_last_lr()[0])
        rising = sum(b > a for a, b in pairwise(lrs)) / len(lrs)
        out.append(f"{type(scheduler).__name__}: rises on {rising:.0%} of steps, {lrs[5 * 32 - 1]:.1e} after epoch 5 of 100")
    return "; ".join(out)


def left_in_eval_mode():
    out = {}
    for mode in (True, False):
        scores = []
        for seed in range(3):
            torch.manual_seed(seed)
            model = mlp(nn.BatchNorm1d(128), nn.Dropout(0.5))
            scores.append(fit(model, Adam(model.parameters(), lr=1e-3), mode=mode)[0])
        out[f"train({mode})"] = f"accuracy {statistics.mean(scores):.3f}, running_mean moved {bool(model[2].running_mean.any())}"
    return str(out)


def layers_that_read_the_mode():
    x, out = torch.randn(4, 8, 8), []
    layers = {"Dropout": nn.Dropout(), "BatchNorm": nn.BatchNorm1d(8), "RReLU": nn.RReLU(), "LayerNorm": nn.LayerNorm(8),
              "InstanceNorm": nn.InstanceNorm1d(8, track_running_stats=True), "AlphaDropout": nn.AlphaDropout(),
              "LSTM(dropout)": nn.LSTM(8, 8, 2, dropout=0.5), "attention(dropout)": nn.MultiheadAttention(8, 2, dropout=0.5),
              "spectral_norm": nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))}
    for name, layer in layers.items():
        args = (x, x, x) if name.startswith("att") else (x,)
        a, b = (layer.train(mode)(*args) for mode in (True, False))
        out += [name] if not torch.allclose(*(v[0] if isinstance(v, tuple) else v for v in (a, b)), atol=1e-6) else []
    return "train and eval differ: " + ", ".join(out)


def softmax_twice():
    def double(p, y):
        return cross_entropy(p.softmax(1), y)
    out = []
    for loss_fn in (cross_entropy, double):
        torch.manual_seed(0)
        model = mlp()
        accuracy = fit(model, SGD(model.parameters(), lr=0.1), loss_fn=loss_fn)[0]
        out.append(f"accuracy {accuracy:.3f}, loss {loss_fn(model(X), Y).item():.2f}")
    return f"{out}; smallest loss possible {double(1e4 * torch.eye(10), torch.arange(10)).item():.3f}"


def zero_grad_missing():
    out = []
    for name, make in {"SGD 0.1": lambda p: SGD(p, lr=0.1), "SGD 0.001": lambda p: SGD(p, lr=1e-3), "Adam": Adam}.items():
        for clip in (None, 1.0):
            scores = []
            for zero in (True, False):
                torch.manual_seed(0)
                scores.append("%.3f (norm %.0f)" % fit(model := mlp(), make(model.parameters()), 7, zero, clip))  # noqa: UP031
            out.append(f"{name} clip {clip}: {scores[0]} -> {scores[1]}")
    return "; ".join(out)


def layers_in_a_list():
    layers = [nn.Linear(8, 8)]
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head, self.scale = layers, nn.Linear(8, 1), torch.ones(1, requires_grad=True)
    everything = error(lambda: SGD(nn.ParameterList().parameters(), lr=0.1))
    return f"all in lists: {everything}; registered of a mixture: {[n for n, _ in Model().named_parameters()]}"


def move_discarded():
    x = torch.ones(2, 4)
    x.to("meta"), x.double()
    return f"x stays {x.device} {x.dtype}; {error(lambda: nn.Linear(4, 4, device='meta')(x))}; cpu in meta: " + error(
        lambda: x + torch.ones(2, 4, device="meta"))


def eval_missing():
    torch.manual_seed(0)
    fit(model := mlp(nn.BatchNorm1d(128), nn.Dropout(0.5)), Adam(model.parameters()), 5)
    with torch.no_grad():
        losses = {mode: [cross_entropy(model.train(mode)(X[1500:]), Y[1500:]).item() for _ in range(20)] for mode in (False, True)}
    return "; ".join(f"train mode {m}: {statistics.mean(v):.3f} +- {statistics.pstdev(v):.3f}" for m, v in losses.items())


if __name__ == "__main__":
    import claims_around
    import claims_graph

    for module in (sys.modules["__main__"], claims_graph, claims_around):
        for name, claim in list(vars(module).items()):
            mine = callable(claim) and not name.startswith("_") and claim.__module__ == module.__name__
            if mine and (name in sys.argv[1:] if sys.argv[1:] else not name.startswith("slow_")):
                print(f"{name}: {claim()}", flush=True)
