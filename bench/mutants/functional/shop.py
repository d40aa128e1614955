"""Recommendations for a shop: matrix factorisation with biases, ranked pairs (BPR), plain tensors and torch.optim.

The last purchase of each user is the test, the one before it is for validation. A held out item is ranked among 99
items that the user has never bought; hit@10 and NDCG@10 are reported, with popularity as the reference.
"""

import numpy as np
import torch
from torch.nn.functional import logsigmoid

USERS, ITEMS, DIM = 600, 400, 16


def simulate(seed):
    """Purchases in the order of time, a list of items for each user."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(USERS, 6))
    kind = rng.normal(size=(ITEMS, 6))
    popular = rng.normal(scale=1.0, size=ITEMS)
    score = taste @ kind.T * 0.75 + popular
    history = []
    for u in range(USERS):
        n = rng.integers(8, 40)
        p = np.exp(score[u] - score[u].max())
        history.append(rng.choice(ITEMS, size=n, replace=False, p=p / p.sum()).tolist())
    return history


def split(history):
    train = [(u, i) for u, items in enumerate(history) for i in items[:-2]]
    val = [(u, items[-2]) for u, items in enumerate(history)]
    test = [(u, items[-1]) for u, items in enumerate(history)]
    return np.array(train), np.array(val), np.array(test)


def seen_matrix(pairs):
    seen = torch.zeros(USERS, ITEMS, dtype=torch.bool)
    seen[pairs[:, 0], pairs[:, 1]] = True
    return seen


def candidates(held_out, bought, rng, n=99):
    """The held out item first, then n items that the user has not bought at all."""
    rows = []
    for u, item in held_out:
        free = np.flatnonzero(~bought[u].numpy())
        rows.append([item, *rng.choice(free, size=n, replace=False)])
    return torch.tensor(np.array(rows))


def draw_negatives(users, seen, gen):
    """One item for each user that is not among the user's training items."""
    items = torch.randint(ITEMS, (len(users),), generator=gen)
    clash = seen[users, items]
    while clash.any():
        items[clash] = torch.randint(ITEMS, (int(clash.sum()),), generator=gen)
        clash = seen[users, items]
    return items


def make_params(gen):
    P = {
        "user": 0.1 * torch.randn(USERS, DIM, generator=gen),
        "item": 0.1 * torch.randn(ITEMS, DIM, generator=gen),
        "item_bias": torch.zeros(ITEMS),
    }
    for p in P.values():
        p.requires_grad_(True)
    return P


def score(P, u, i):
    """u: (B,) and i: (B,) or (B, K) -> scores of the shape of i."""
    vu, vi = P["user"][u], P["item"][i]
    if i.dim() == 2:
        vu = vu.unsqueeze(1)
    return (vu * vi).sum(-1) + P["item_bias"][i]


def bpr_loss(P, u, pos, neg, reg=0.01):
    x = score(P, u, pos) - score(P, u, neg)
    ranked = -logsigmoid(x).mean()
    size = P["user"][u].pow(2).sum(1) + P["item"][pos].pow(2).sum(1) + P["item"][neg].pow(2).sum(1)
    return ranked + reg * 0.5 * size.mean()


def rank_of_first(scores):
    """How many candidates have a higher score than the first; ties count as half."""
    first, rest = scores[:, :1], scores[:, 1:]
    return (rest > first).sum(1).float() + 0.5 * (rest == first).sum(1).float()


def metrics(scores, k=10):
    rank = rank_of_first(scores)
    hit = (rank < k).float()
    ndcg = hit / torch.log2(rank + 2)
    return hit.mean().item(), ndcg.mean().item(), (1 / (rank + 1)).mean().item()


@torch.no_grad()
def evaluate(P, users, cand):
    return metrics(score(P, users, cand))


def main():
    rng, gen = np.random.default_rng(9), torch.Generator().manual_seed(9)
    history = simulate(seed=1)
    train, val, test = split(history)
    bought = seen_matrix(np.concatenate([train, val, test]))
    seen = seen_matrix(train)
    val_cand, test_cand = candidates(val, bought, rng), candidates(test, bought, rng)
    everyone = torch.arange(USERS)
    u_all, i_all = torch.tensor(train[:, 0]), torch.tensor(train[:, 1])
    print(f"{len(train)} purchases for training, {bought.float().mean():.4f} of the matrix")

    P = make_params(gen)
    opt = torch.optim.Adam(P.values(), lr=0.015)
    sched = torch.optim.lr_scheduler.StepLR(opt, step_size=8, gamma=0.3)
    best, best_P, best_epoch = -1.0, None, -1
    for epoch in range(24):
        perm = torch.randperm(len(u_all), generator=gen)
        total = 0.0
        for rows in perm.split(256):
            u, pos = u_all[rows], i_all[rows]
            neg = draw_negatives(u, seen, gen)
            loss = bpr_loss(P, u, pos, neg)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows)
        sched.step()
        hit, ndcg, mrr = evaluate(P, everyone, val_cand)
        if ndcg > best:
            best, best_epoch = ndcg, epoch
            best_P = {name: p.detach().clone() for name, p in P.items()}
        if epoch % 4 == 3:
            print(
                f"epoch {epoch + 1:2d} loss {total / len(u_all):.4f} val hit@10 {hit:.4f} ndcg {ndcg:.4f} mrr {mrr:.4f}"
            )

    hit, ndcg, mrr = evaluate(best_P, everyone, test_cand)
    counts = torch.bincount(i_all, minlength=ITEMS).float()
    pop_hit, pop_ndcg, pop_mrr = metrics(counts[test_cand])
    print(f"best epoch {best_epoch + 1} val ndcg {best:.5f}")
    print(f"test hit@10 {hit:.5f} ndcg@10 {ndcg:.5f} mrr {mrr:.5f}")
    print(f"popularity hit@10 {pop_hit:.5f} ndcg@10 {pop_ndcg:.5f} mrr {pop_mrr:.5f}")


main()
