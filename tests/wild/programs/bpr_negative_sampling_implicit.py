"""Recommendation from implicit feedback: BPR with sampled negatives, sparse embeddings with SparseAdam, hit rate on held-out items."""
import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
USERS, ITEMS, DIM = 80, 120, 12


def interactions():
    """Users like items of their taste; the last item of each user is held out."""
    taste, genre = rng.integers(0, 5, USERS), rng.integers(0, 5, ITEMS)
    train, held_out = [], []
    for user in range(USERS):
        weight = np.where(genre == taste[user], 8.0, 0.4)
        liked = rng.choice(ITEMS, size=12, replace=False, p=weight / weight.sum())
        train += [(user, item) for item in liked[:-1]]
        held_out.append(liked[-1])
    return np.array(train), np.array(held_out)


class MatrixFactorisation(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, DIM, sparse=True), nn.Embedding(ITEMS, DIM, sparse=True)
        self.bias = nn.Embedding(ITEMS, 1, sparse=True)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, users, items):
        return (self.user(users) * self.item(items)).sum(-1) + self.bias(items).squeeze(-1)

    def rank(self):
        return self.user.weight @ self.item.weight.T + self.bias.weight.T


def sample_negatives(users, seen):
    items = rng.integers(0, ITEMS, len(users))
    for k, (u, i) in enumerate(zip(users, items)):
        while (u, i) in seen:
            i = rng.integers(0, ITEMS)
        items[k] = i
    return items


train, held_out = interactions()
seen = set(map(tuple, train))
model = MatrixFactorisation()
optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.02)
for epoch in range(15):
    rng.shuffle(train)
    total = 0.0
    for start in range(0, len(train), 110):
        users, liked = train[start:start + 110].T
        negatives = sample_negatives(users, seen)
        u, p, n = (torch.as_tensor(a) for a in (users.copy(), liked.copy(), negatives))
        optimizer.zero_grad()
        loss = -nn.functional.logsigmoid(model(u, p) - model(u, n)).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 4:
        with torch.no_grad():
            scores = model.rank()
            scores[torch.as_tensor(train[:, 0].copy()), torch.as_tensor(train[:, 1].copy())] = -1e9
            hits = (scores.topk(20).indices == torch.as_tensor(held_out)[:, None]).any(1).float().mean()
        print(f"epoch {epoch} loss {total / 8:.3f} hit rate at 20 {hits:.3f}")
