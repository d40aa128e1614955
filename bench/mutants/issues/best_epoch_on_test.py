"""Implicit-feedback recommendation with BPR, leave-one-out protocol, HR@10 and NDCG@10."""
import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(31)
rng = np.random.default_rng(31)
N_USERS, N_ITEMS, TOP_K = 80, 150, 10


def simulate_interactions():
    """Each user clicks items with probability by taste; the last two clicks are held out."""
    taste, quality = rng.normal(0, 1, (N_USERS, 5)), rng.normal(0, 1, (N_ITEMS, 5))
    scores = taste @ quality.T + rng.gumbel(0, 1.5, (N_USERS, N_ITEMS))
    history = [rng.permutation(np.argsort(-row)[:18]) for row in scores]
    train = [(u, i) for u, items in enumerate(history) for i in items[:-2]]
    val_item = torch.tensor([items[-2] for items in history])
    test_item = torch.tensor([items[-1] for items in history])
    return torch.tensor(train), val_item, test_item


class BPR(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.user = nn.Embedding(N_USERS, dim)
        self.item = nn.Embedding(N_ITEMS, dim)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1)

    def all_scores(self):
        return self.user.weight @ self.item.weight.t()


train_pairs, val_item, test_item = simulate_interactions()
clicked = torch.zeros(N_USERS, N_ITEMS, dtype=torch.bool)
clicked[train_pairs[:, 0], train_pairs[:, 1]] = True


def sample_negatives(users):
    neg = torch.randint(0, N_ITEMS, users.shape)
    while (bad := clicked[users, neg]).any():
        neg[bad] = torch.randint(0, N_ITEMS, (int(bad.sum()),))
    return neg


@torch.no_grad()
def ranking_metrics(model, target, exclude):
    model.eval()
    scores = model.all_scores().masked_fill(exclude, float("-inf"))
    target_score = scores.gather(1, target.unsqueeze(1))
    rank = (scores > target_score).sum(1)
    hit = (rank < TOP_K).float()
    ndcg = hit / torch.log2(rank.float() + 2)
    return hit.mean().item(), ndcg.mean().item()


model = BPR()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-5)
clicked_or_val = clicked.clone()
clicked_or_val[torch.arange(N_USERS), val_item] = True

best_hr, best_epoch, best_weights = -1.0, 0, None
for epoch in range(1, 41):
    model.train()
    shuffled = train_pairs[torch.randperm(len(train_pairs))]
    epoch_loss = 0.0
    for batch in shuffled.split(128):
        u, pos = batch[:, 0], batch[:, 1]
        neg = sample_negatives(u)
        loss = -F.logsigmoid(model(u, pos) - model(u, neg)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(batch)
    hr, ndcg = ranking_metrics(model, val_item, clicked)
    if hr > best_hr:
        best_hr, best_epoch, best_weights = hr, epoch, copy.deepcopy(model.state_dict())
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {epoch_loss / len(train_pairs):.4f} HR@{TOP_K} {hr:.4f} NDCG@{TOP_K} {ndcg:.4f}")

model.load_state_dict(best_weights)
test_hr, test_ndcg = ranking_metrics(model, test_item, clicked_or_val)
print(f"best epoch {best_epoch}: test HR@{TOP_K} {test_hr:.4f} NDCG@{TOP_K} {test_ndcg:.4f}")
