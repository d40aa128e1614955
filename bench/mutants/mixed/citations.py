"""Node classification with a two-layer graph convolution, in plain functions.

Besides the word features a node may carry its label as an input ("label usage"): in every
epoch a random half of the training nodes show their labels and the other half is trained on.
"""
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

N, CLASSES, WORDS = 900, 5, 60


def make_graph(seed):
    g = np.random.default_rng(seed)
    y = g.choice(CLASSES, N, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    activity = g.pareto(2.5, N) + 0.4                                  # some are cited often
    same = y[:, None] == y[None, :]
    rate = np.where(same, 0.016, 0.0016) * np.outer(activity, activity)
    upper = np.triu(g.random((N, N)) < rate, k=1)
    topic = g.random((CLASSES, WORDS)) < 0.15
    x = (g.random((N, WORDS)) < 0.04 + 0.16 * topic[y]).astype(np.float32)
    edges = np.stack(np.nonzero(upper))
    return torch.tensor(x), torch.tensor(y), torch.tensor(edges)


def make_masks(y, per_class, n_val, seed):
    order = torch.randperm(N, generator=torch.Generator().manual_seed(seed))
    train = torch.zeros(N, dtype=torch.bool)
    for c in range(CLASSES):
        train[order[y[order] == c][:per_class]] = True
    rest = order[~train[order]]
    val, test = torch.zeros_like(train), torch.zeros_like(train)
    val[rest[:n_val]] = True
    test[rest[n_val:]] = True
    return train, val, test


def normalised_adjacency(edges):
    """D^-1/2 (A + I) D^-1/2."""
    loops = torch.arange(N).repeat(2, 1)
    both = torch.cat([edges, edges.flip(0), loops], dim=1)
    degree = torch.bincount(both[0], minlength=N).float()
    weight = degree[both[0]].rsqrt() * degree[both[1]].rsqrt()
    adj = torch.zeros(N, N)
    adj[both[0], both[1]] = weight
    return adj


def glorot(gen, *shape):
    bound = (6 / sum(shape)) ** 0.5
    return ((torch.rand(*shape, generator=gen) * 2 - 1) * bound).requires_grad_()


def init_params(seed, hidden=32):
    gen = torch.Generator().manual_seed(seed)
    return {
        "w1": glorot(gen, WORDS + CLASSES, hidden), "b1": torch.zeros(hidden, requires_grad=True),
        "w2": glorot(gen, hidden, CLASSES), "b2": torch.zeros(CLASSES, requires_grad=True),
    }


def forward(params, adj, x, training, p=0.5):
    x = F.dropout(x, p, training=training)
    h = torch.relu(adj @ (x @ params["w1"]) + params["b1"])
    h = F.dropout(h, p, training=training)
    return adj @ (h @ params["w2"]) + params["b2"]


def with_labels(x, y, shown):
    """Append the one-hot labels of the nodes in `shown`, zeros for all the others."""
    onehot = F.one_hot(y, CLASSES).float()
    return torch.cat([x, onehot * shown.unsqueeze(1)], dim=1)


def split_shown(train, rate=0.5):
    coin = torch.rand(N) < rate
    return train & coin, train & ~coin


def objective(logits, y, mask):
    return F.cross_entropy(logits[mask], y[mask], label_smoothing=0.05)


def accuracy(logits, y, mask):
    return (logits[mask].argmax(dim=1) == y[mask]).float().mean().item()


def macro_recall(logits, y, mask):
    pred, gold = logits[mask].argmax(dim=1), y[mask]
    return torch.stack([(pred[gold == c] == c).float().mean() for c in range(CLASSES)]).mean().item()


def train_step(params, optimizer, adj, x, y, train):
    shown, hidden = split_shown(train)
    logits = forward(params, adj, with_labels(x, y, shown), training=True)
    loss = objective(logits, y, hidden)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def infer(params, adj, x, y, train):
    """All the training labels are known at inference."""
    return forward(params, adj, with_labels(x, y, train), training=False)


def fit(adj, x, y, masks, seed, epochs=150, patience=60):
    torch.manual_seed(seed)
    train, val, _ = masks
    params = init_params(seed)
    optimizer = torch.optim.Adam(
        [{"params": [params["w1"], params["b1"]], "weight_decay": 2e-3}, {"params": [params["w2"], params["b2"]]}], lr=0.01)
    best, best_epoch, kept = -1.0, 0, None
    evaluate = partial(infer, params, adj, x, y, train)
    for epoch in range(epochs):
        loss = train_step(params, optimizer, adj, x, y, train)
        logits = evaluate()
        score, val_loss = accuracy(logits, y, val), objective(logits, y, val).item()
        if score > best:
            best, best_epoch = score, epoch
            kept = {k: v.detach().clone() for k, v in params.items()}
        if epoch % 40 == 0:
            print(f"  epoch {epoch:3d} loss {loss:.4f} val loss {val_loss:.4f} acc {score:.4f}")
        if epoch - best_epoch > patience:
            break
    return kept, best, best_epoch


def main():
    x, y, edges = make_graph(seed=3)
    adj = normalised_adjacency(edges)
    masks = make_masks(y, per_class=12, n_val=200, seed=3)
    keep = (x > 0).float()
    x = keep / keep.sum(dim=1, keepdim=True).clamp(min=1)
    print("edges", edges.shape[1], "train/val/test", [int(m.sum()) for m in masks])
    results = []
    for seed in range(3):
        kept, best, epoch = fit(adj, x, y, masks, seed)
        logits = infer(kept, adj, x, y, masks[0])
        acc, rec = accuracy(logits, y, masks[2]), macro_recall(logits, y, masks[2])
        print(f"seed {seed} best epoch {epoch} val {best:.4f} test {acc:.4f} macro recall {rec:.4f}")
        results.append(acc)
    print(f"test accuracy {np.mean(results):.5f} +- {np.std(results):.5f}")


if __name__ == "__main__":
    main()
