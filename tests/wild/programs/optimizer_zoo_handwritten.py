"""Hand-written optimizers of every make: functional state in dicts, subclasses of subclasses, Lookahead, SGLD, Adafactor, a wrapper class, no class."""
import copy
import math
import torch
from torch import nn
from torch.optim import Optimizer

torch.manual_seed(0)
X = torch.randn(256, 8)
Y = (X[:, :4].square().sum(1) > 4).long()


class SGLD(Optimizer):
    def __init__(self, params, lr=1e-2, n=256):
        super().__init__(params, dict(lr=lr, n=n))
        self.generator = torch.Generator().manual_seed(1)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None:
                    noise = torch.randn(p.shape, generator=self.generator)
                    p.add_(p.grad, alpha=-g["lr"]).add_(noise, alpha=math.sqrt(2 * g["lr"] / g["n"]) * 0.1)
        return loss


class Lookahead:
    """Not an Optimizer by class: it quacks like one."""

    def __init__(self, inner, k=5, alpha=0.5):
        self.inner, self.k, self.alpha, self.t = inner, k, alpha, 0
        self.slow = [[p.detach().clone() for p in g["params"]] for g in inner.param_groups]

    param_groups = property(lambda self: self.inner.param_groups)
    state = property(lambda self: self.inner.state)

    def zero_grad(self, set_to_none=True):
        self.inner.zero_grad(set_to_none)

    def step(self, closure=None):
        loss = self.inner.step(closure)
        self.t += 1
        if self.t % self.k == 0:
            for g, slow in zip(self.inner.param_groups, self.slow):
                for p, s in zip(g["params"], slow):
                    s.add_(p.data - s, alpha=self.alpha)
                    p.data.copy_(s)
        return loss


class Normalised(torch.optim.AdamW):
    def step(self, closure=None):
        norm = torch.nn.utils.get_total_norm([p.grad for g in self.param_groups for p in g["params"] if p.grad is not None])
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None:
                    p.grad.div_(norm + 1e-8)
        return super().step(closure)


def rmsprop(params, cache={}, lr=2e-3):
    for i, p in enumerate(params):
        c = cache[i] = 0.9 * cache.get(i, torch.zeros_like(p)) + 0.1 * p.grad.detach() ** 2
        p.data = p.data - lr * p.grad / (c.sqrt() + 1e-6)
        p.grad.detach_()
        p.grad.zero_()


def train(name, make):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(8, 32), nn.ELU(), nn.Linear(32, 2))
    opt = make(net)
    first = None
    for _ in range(60):
        i = torch.randint(0, 256, (64,))
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        if opt is not None:
            opt.zero_grad()
        loss.backward()
        opt.step() if opt is not None else rmsprop(list(net.parameters()), train.cache)
        first = first or loss.item()
    print(f"{name:>12} {first:.3f} -> {nn.functional.cross_entropy(net(X), Y).item():.3f}")


train.cache = {}
train("sgld", lambda n: SGLD(n.parameters(), 0.1))
train("lookahead", lambda n: Lookahead(torch.optim.SGD(n.parameters(), 0.2, momentum=0.9)))
train("normalised", lambda n: Normalised([{"params": [n[0].weight, n[2].weight]}, {"params": [n[0].bias, n[2].bias], "weight_decay": 0.0}], lr=1e-2))
train("adafactor", lambda n: torch.optim.Adafactor(n.parameters(), lr=0.05))
train("function", lambda n: None)
if hasattr(torch.optim, "Muon"):
    class Both:
        def __init__(self, net):
            self.parts = [torch.optim.Muon([p for p in net.parameters() if p.ndim == 2], lr=0.02), torch.optim.AdamW([p for p in net.parameters() if p.ndim < 2], lr=0.02)]

        def zero_grad(self):
            [o.zero_grad() for o in self.parts]

        def step(self):
            [o.step() for o in self.parts]

    train("muon", Both)
train("copied", lambda n: copy.copy(torch.optim.Adam(n.parameters(), 1e-2)))
