# Implicit-feedback recommendation: two towers (id embedding + side features),
# BPR loss with sampled negatives, leave-one-out evaluation with hit rate@10 and NDCG@10.
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
rng = np.random.default_rng(5)

n_users, n_items, n_genres, dim = 300, 240, 8, 24
K = 10

# ---------------------------------------------------------------- data
item_genre = rng.integers(0, n_genres, n_items)
popularity = rng.gamma(1.5, 1.0, n_items)
taste = rng.dirichlet(np.full(n_genres, 0.25), n_users)
hidden_u = rng.normal(0, 1, (n_users, 4))
hidden_i = rng.normal(0, 1, (n_items, 4))
affinity = 5.0 * taste[:, item_genre] + 0.5 * hidden_u @ hidden_i.T + 0.35 * popularity

histories = []                                  # in the order of time
for u in range(n_users):
    n = rng.integers(14, 30)
    gumbel = rng.gumbel(size=n_items)
    chosen = np.argsort(-(affinity[u] + gumbel))[:n]
    histories.append(rng.permutation(chosen))

# the last item is for test, the one before it for validation, the rest for training
train_pairs, val_item, test_item = [], [], []
for u, h in enumerate(histories):
    for i in h[:-2]:
        train_pairs.append((u, i))
    val_item.append(h[-2])
    test_item.append(h[-1])
train_pairs = torch.tensor(np.array(train_pairs), dtype=torch.long)
val_item = torch.tensor(np.array(val_item), dtype=torch.long)
test_item = torch.tensor(np.array(test_item), dtype=torch.long)

seen = torch.zeros(n_users, n_items, dtype=torch.bool)       # training interactions only
seen[train_pairs[:, 0], train_pairs[:, 1]] = True
genre = torch.tensor(item_genre)
counts = torch.bincount(train_pairs[:, 1], minlength=n_items).float()
log_pop = torch.log1p(counts)
log_pop = (log_pop - log_pop.mean()) / log_pop.std()
genre_onehot = F.one_hot(genre, n_genres).float()
profile = seen.float() @ genre_onehot
profile = profile / profile.sum(dim=1, keepdim=True)


# ---------------------------------------------------------------- model
class UserTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(n_users, dim)
        self.mlp = nn.Sequential(nn.Linear(n_genres, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, dim))
        nn.init.normal_(self.emb.weight, std=0.05)

    def forward(self, u):
        return self.emb(u) + self.mlp(profile[u])


class ItemTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(n_items, dim)
        self.genre = nn.Embedding(n_genres, dim)
        self.bias = nn.Linear(1, 1)
        nn.init.normal_(self.emb.weight, std=0.05)
        nn.init.normal_(self.genre.weight, std=0.05)

    def forward(self, i):
        return self.emb(i) + self.genre(genre[i]), self.bias(log_pop[i].unsqueeze(-1)).squeeze(-1)


user_tower, item_tower = UserTower(), ItemTower()
params = list(user_tower.parameters()) + list(item_tower.parameters())
opt = torch.optim.Adam(params, lr=0.006)


def sample_negatives(users):
    neg = torch.randint(0, n_items, users.shape)
    while True:
        bad = seen[users, neg]
        if not bad.any():
            return neg
        neg[bad] = torch.randint(0, n_items, (int(bad.sum()),))


def score(u, i):
    v, b = item_tower(i)
    return (user_tower(u) * v).sum(dim=-1) + b


@torch.no_grad()
def evaluate(target, exclude):
    """Rank the target among all the items that the user has not used already."""
    user_tower.eval()
    item_tower.eval()
    v, b = item_tower(torch.arange(n_items))
    scores = user_tower(torch.arange(n_users)) @ v.T + b
    scores = scores.masked_fill(exclude, float("-inf"))
    own = scores.gather(1, target.unsqueeze(1))
    rank = (scores > own).sum(dim=1)                          # 0 is the best
    hit = (rank < K).float()
    ndcg = hit / torch.log2(rank.float() + 2)
    return hit.mean().item(), ndcg.mean().item()


# ---------------------------------------------------------------- training
best_ndcg, best, bad_epochs = -1.0, None, 0
for epoch in range(25):
    user_tower.train()
    item_tower.train()
    order = torch.randperm(len(train_pairs))
    running = 0.0
    for idx in order.split(256):
        u, pos = train_pairs[idx].unbind(1)
        neg = sample_negatives(u)
        diff = score(u, pos) - score(u, neg)
        loss = -F.logsigmoid(diff).mean()
        reg = (user_tower.emb(u).pow(2).sum(1) + item_tower.emb(pos).pow(2).sum(1)
               + item_tower.emb(neg).pow(2).sum(1)).mean()
        loss = loss + 3e-3 * reg
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item() * len(idx)
    hr, ndcg = evaluate(val_item, seen)
    if epoch % 4 == 0:
        print(f"epoch {epoch:2d} loss {running / len(train_pairs):.5f} val HR@{K} {hr:.4f} NDCG@{K} {ndcg:.5f}")
    if ndcg > best_ndcg:
        best_ndcg, bad_epochs = ndcg, 0
        best = [{k: t.clone() for k, t in m.state_dict().items()} for m in (user_tower, item_tower)]
    else:
        bad_epochs += 1
        if bad_epochs == 8:
            break

user_tower.load_state_dict(best[0])
item_tower.load_state_dict(best[1])
exclude = seen.clone()
exclude[torch.arange(n_users), val_item] = True               # by now also seen
hr, ndcg = evaluate(test_item, exclude)

pop = counts.expand(n_users, -1).masked_fill(exclude, float("-inf"))
pop_rank = (pop > pop.gather(1, test_item.unsqueeze(1))).sum(1)
print(f"best val NDCG@{K} {best_ndcg:.5f}")
print(f"test HR@{K} {hr:.4f} NDCG@{K} {ndcg:.5f}   popularity HR@{K} {(pop_rank < K).float().mean().item():.4f}")
