"""Continual learning with gradient surgery: PCGrad between tasks, A-GEM's reference gradients, EWC penalties; p.grad set by hand."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


def task(k, n=64):
    x = torch.randn(n, 2)
    angle = torch.tensor(k * 0.7)
    w = torch.stack([angle.cos(), angle.sin()])
    return x, ((x @ w).abs() > 0.7).long()


def flat(grads):
    return torch.cat([g.reshape(-1) for g in grads])


def assign(params, vector):
    at = 0
    for p in params:
        p.grad = vector[at : at + p.numel()].view_as(p).clone()
        at += p.numel()


def pcgrad(net, opt, steps=60):
    params = list(net.parameters())
    for _ in range(steps):
        gs = []
        for k in (0, 2):
            x, y = task(k)
            gs.append(flat(torch.autograd.grad(F.cross_entropy(net["heads"][k](net["trunk"](x)), y), params, allow_unused=True, materialize_grads=True)))
        mixed = []
        for i, g in enumerate(gs):
            other = gs[1 - i]
            dot = torch.dot(g, other)
            mixed.append(g - dot / other.norm() ** 2 * other if dot < 0 else g)
        assign(params, sum(mixed))
        opt.step()
        opt.zero_grad()


def agem(net, opt, k, memory, steps=60):
    params, violations = list(net.parameters()), 0
    for _ in range(steps):
        opt.zero_grad()
        x, y = memory
        F.cross_entropy(net["heads"][0](net["trunk"](x)), y).backward()
        ref = flat([torch.zeros_like(p) if p.grad is None else p.grad for p in params])
        opt.zero_grad()
        x, y = task(k)
        F.cross_entropy(net["heads"][k](net["trunk"](x)), y).backward()
        g = flat([torch.zeros_like(p) if p.grad is None else p.grad for p in params])
        dot = g @ ref
        if dot < 0:
            violations += 1
            assign(params, g - dot / (ref @ ref) * ref)
        opt.step()
    return violations


def ewc(net, k, fisher, old, steps=60):
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(steps):
        x, y = task(k)
        loss = F.cross_entropy(net["heads"][k](net["trunk"](x)), y)
        loss = loss + 50 * sum((f * (p - o) ** 2).sum() for f, p, o in zip(fisher, net["trunk"].parameters(), old))
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def score(net, k):
    x, y = task(k, 1000)
    return round((net["heads"][k](net["trunk"](x)).argmax(1) == y).float().mean().item(), 3)


torch.manual_seed(0)
net = nn.ModuleDict({"trunk": nn.Sequential(nn.Linear(2, 64), nn.ReLU()), "heads": nn.ModuleList(nn.Linear(64, 2) for _ in range(4))})
adam = torch.optim.Adam(net.parameters(), lr=0.02)
pcgrad(net, adam)
print("pcgrad", score(net, 0), score(net, 2))
print("agem violations", agem(net, torch.optim.SGD(net.parameters(), lr=0.2), 1, task(0, 128)), score(net, 0), score(net, 1))
net.zero_grad()
fisher = [torch.zeros_like(p) for p in net["trunk"].parameters()]
for _ in range(30):
    x, y = task(0, 1)
    net.zero_grad()
    F.cross_entropy(net["heads"][0](net["trunk"](x)), y).backward()
    for f, p in zip(fisher, net["trunk"].parameters()):
        f += p.grad**2 / 30
old = copy.deepcopy([p.data for p in net["trunk"].parameters()])
net.zero_grad()
ewc(net, 3, fisher, old)
print("ewc", score(net, 0), score(net, 3))
