#!/usr/bin/env python
"""Voice-print style metric learning: batch-hard triplets plus an InfoNCE term on two noisy
views; retrieval is measured on identities that were never trained on."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F

ap = argparse.ArgumentParser()
ap.add_argument("--ids", type=int, default=70)
ap.add_argument("--per-id", type=int, default=24)
ap.add_argument("--steps", type=int, default=360)
ap.add_argument("--warmup", type=int, default=40)
ap.add_argument("--P", type=int, default=12, help="identities in a batch")
ap.add_argument("--K", type=int, default=4, help="recordings of each")
ap.add_argument("--lr", type=float, default=2e-3)
ap.add_argument("--margin", type=float, default=0.3)
ap.add_argument("--tau", type=float, default=0.15)
ap.add_argument("--w-nce", type=float, default=0.3)
ap.add_argument("--seed", type=int, default=8)


def simulate(ids, per_id, seed):
    """Identity code + session code, mixed by a fixed nonlinear channel."""
    g = np.random.default_rng(seed)
    who = np.repeat(np.arange(ids), per_id)
    code = g.normal(0, 1, (ids, 8))[who]
    session = g.normal(0, 1.6, (len(who), 6))
    mix1, mix2 = g.normal(0, 0.45, (14, 64)), g.normal(0, 0.25, (64, 40))
    x = np.tanh(np.concatenate([code, session], 1) @ mix1) @ mix2
    x = x + g.normal(0, 0.1, x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(who)


def split_identities(who, seed):
    """Disjoint sets of identities: 60% / 20% / 20%."""
    names = torch.randperm(int(who.max()) + 1, generator=torch.Generator().manual_seed(seed))
    a, b = int(0.6 * len(names)), int(0.8 * len(names))
    return [torch.isin(who, part) for part in (names[:a], names[a:b], names[b:])]


def pk_batches(who, P, K, steps, seed):
    g = np.random.default_rng(seed)
    members = {int(c): np.flatnonzero(who.numpy() == c) for c in who.unique()}
    for _ in range(steps):
        chosen = g.choice(list(members), P, replace=False)
        yield torch.tensor(np.concatenate([g.choice(members[c], K, replace=False) for c in chosen]))


def make_encoder(d_in, d_out=24, width=128):
    return torch.nn.Sequential(
        torch.nn.Linear(d_in, width), torch.nn.LayerNorm(width), torch.nn.GELU(),
        torch.nn.Linear(width, width), torch.nn.LayerNorm(width), torch.nn.GELU(),
        torch.nn.Linear(width, d_out),
    )


def embed(net, x):
    return F.normalize(net(x), dim=-1)


def augment(x):
    keep = (torch.rand_like(x) > 0.1).float()
    return x * keep + 0.1 * torch.randn_like(x)


def pairwise(z):
    sq = (2 - 2 * z @ z.t()).clamp(min=1e-8)
    return sq.sqrt()


def triplet_loss(z, who, margin):
    dist = pairwise(z)
    same = who[:, None] == who[None, :]
    eye = torch.eye(len(who), dtype=torch.bool)
    hardest_pos = dist.masked_fill(~same | eye, -1.0).max(dim=1).values
    hardest_neg = dist.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_pos - hardest_neg + margin).mean()


def info_nce(z1, z2, who, tau):
    """The other view of the same recording is the positive; other recordings of its identity
    are neither positive nor negative."""
    logits = z1 @ z2.t() / tau
    skip = (who[:, None] == who[None, :]) & ~torch.eye(len(who), dtype=torch.bool)
    logits = logits.masked_fill(skip, float("-inf"))
    target = torch.arange(len(z1))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


@torch.no_grad()
def recall_at(net, x, who, ks=(1, 4)):
    """Each recording is a query against all the other ones."""
    net.eval()
    sim = embed(net, x) @ embed(net, x).t()
    sim.fill_diagonal_(-2.0)
    near = sim.topk(max(ks), dim=1).indices
    hit = who[near] == who[:, None]
    net.train()
    return [hit[:, :k].any(dim=1).float().mean().item() for k in ks]


@torch.no_grad()
def mean_average_precision(net, x, who):
    z = embed(net, x)
    sim = (z @ z.t()).fill_diagonal_(-2.0)
    order = sim.argsort(dim=1, descending=True)[:, :-1]
    rel = (who[order] == who[:, None]).float()
    prec = rel.cumsum(1) / torch.arange(1, rel.shape[1] + 1)
    return ((prec * rel).sum(1) / rel.sum(1).clamp(min=1)).mean().item()


def main():
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    x, who = simulate(a.ids, a.per_id, a.seed)
    tr, va, te = split_identities(who, a.seed)
    mean, std = x[tr].mean(0), x[tr].std(0)
    x = (x - mean) / std
    net = make_encoder(x.shape[1])
    opt = torch.optim.AdamW(net.parameters(), lr=a.lr, weight_decay=1e-3)

    def factor(step):
        if step < a.warmup:
            return (step + 1) / a.warmup
        return 0.5 * (1 + np.cos(np.pi * (step - a.warmup) / (a.steps - a.warmup)))

    sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
    print("untrained  val R@1 %.4f R@4 %.4f" % tuple(recall_at(net, x[va], who[va])))
    x_tr, who_tr = x[tr], who[tr]
    running = []
    for step, idx in enumerate(pk_batches(who_tr, a.P, a.K, a.steps, a.seed), 1):
        z1, z2 = embed(net, augment(x_tr[idx])), embed(net, augment(x_tr[idx]))
        loss = triplet_loss(z1, who_tr[idx], a.margin) + a.w_nce * info_nce(z1, z2, who_tr[idx], a.tau)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        running.append(loss.item())
        if step % 60 == 0:
            r1, r4 = recall_at(net, x[va], who[va])
            print(f"step {step}  loss {np.mean(running):.4f}  val R@1 {r1:.4f} R@4 {r4:.4f}")
            running = []
    r1, r4 = recall_at(net, x[te], who[te])
    print(f"test R@1 {r1:.4f} R@4 {r4:.4f} mAP {mean_average_precision(net, x[te], who[te]):.5f}")


if __name__ == "__main__":
    main()
