"""Poincare embeddings of a tree: a Riemannian optimizer written on p.data, with burn-in and a retraction."""
import random

import torch
from torch.optim import Optimizer

EPS = 1e-5


def distance(u, v):
    uu, vv = u.pow(2).sum(-1).clamp(0, 1 - EPS), v.pow(2).sum(-1).clamp(0, 1 - EPS)
    x = 1 + 2 * (u - v).pow(2).sum(-1) / ((1 - uu) * (1 - vv))
    return torch.acosh(x + EPS)


class RiemannianSGD(Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self, lr=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad.data
                if d_p.is_sparse:
                    d_p = d_p.to_dense()
                scale = (1 - p.data.pow(2).sum(-1, keepdim=True)).pow(2) / 4
                p.data.add_(d_p * scale, alpha=-(lr or group["lr"]))
                norms = p.data.norm(dim=-1, keepdim=True)
                p.data = torch.where(norms >= 1, p.data / norms * (1 - EPS), p.data)


def tree(depth=4, branching=2):
    edges, level, new = [], [0], 1
    for _ in range(depth):
        nxt = []
        for parent in level:
            for _ in range(branching):
                edges.append((new, parent))
                nxt.append(new)
                new += 1
        level = nxt
    return edges, new


random.seed(0)
torch.manual_seed(0)
edges, n = tree()
emb = torch.nn.Embedding(n, 2, sparse=True)
emb.weight.data.uniform_(-1e-3, 1e-3)
opt = RiemannianSGD(emb.parameters(), lr=0.3)
for epoch in range(25):
    lr = 0.03 if epoch < 5 else None
    random.shuffle(edges)
    total = 0.0
    for k in range(0, len(edges), 10):
        chunk = edges[k : k + 10]
        u, v = (torch.tensor(c) for c in zip(*chunk))
        neg = torch.randint(0, n, (len(chunk), 8))
        others = torch.cat([v[:, None], neg], 1)
        d = distance(emb(u)[:, None], emb(others))
        loss = (d[:, 0] + torch.logsumexp(-d, 1)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step(lr)
        total += loss.item()
    if epoch % 8 == 0:
        print(epoch, round(total, 3))
with torch.no_grad():
    norms = emb.weight.norm(dim=1)
print("root %.2f leaves %.2f" % (norms[0], norms[-16:].mean()))
