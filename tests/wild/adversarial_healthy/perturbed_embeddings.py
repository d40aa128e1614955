"""Perturbed embeddings: the gradient by them is added to them, on purpose without a graph."""

import torch
from torch import nn
torch.manual_seed(0)
emb = nn.Embedding(50, 16)
body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 3))
ids = torch.randint(0, 50, (128, 5))
y = ids[:, 0] % 3
opt = torch.optim.Adam([*emb.parameters(), *body.parameters()], lr=1e-2)
for s in range(40):
    e = emb(ids).mean(1)
    clean = nn.functional.cross_entropy(body(e), y)
    (g,) = torch.autograd.grad(clean, e, retain_graph=True)
    adv = nn.functional.cross_entropy(body(e + 0.1 * g / (g.norm(dim=1, keepdim=True) + 1e-8)), y)
    loss = clean + adv
    opt.zero_grad()
    loss.backward()
    opt.step()
