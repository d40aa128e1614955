"""Rank the documents of each query by a pairwise margin loss."""

import numpy as np
import torch
from torch import nn


def make_queries(n, rng, docs=5, dim=10):
    direction = np.linspace(1.0, -1.0, dim)
    x = rng.normal(size=(n, docs, dim))
    score = x @ direction + 0.8 * x[..., 0] * x[..., 1] + 0.3 * rng.normal(size=(n, docs))
    relevance = np.digitize(score, [-1.5, 0.5, 2.5])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(relevance)


def pairwise_loss(scores, relevance, margin=0.5):
    i, j = torch.triu_indices(scores.size(1), scores.size(1), offset=1)
    s_i, s_j = scores[:, i], scores[:, j]
    r_i, r_j = relevance[:, i], relevance[:, j]
    differ = r_i != r_j
    target = torch.where(r_i > r_j, 1.0, -1.0)
    return nn.functional.margin_ranking_loss(s_i[differ], s_j[differ], target[differ], margin=margin)


def ndcg(scores, relevance, k=5):
    gain = 2.0**relevance - 1
    discount = 1 / torch.log2(torch.arange(k) + 2.0)
    top = scores.topk(k, dim=1).indices
    dcg = (gain.gather(1, top) * discount).sum(1)
    ideal = (gain.sort(dim=1, descending=True).values[:, :k] * discount).sum(1)
    return (dcg / ideal.clamp(min=1e-9)).mean().item()


class Trainer:
    """Fits a scoring network on queries."""

    def __init__(self, net, lr):
        self.net = net
        self.opt = torch.optim.Adagrad(net.parameters(), lr=lr)

    def scores(self, x):
        return self.net(x).squeeze(-1)

    def epoch(self, x, rel):
        self.net.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(10):
            loss = pairwise_loss(self.scores(x[idx]), rel[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(idx)
        return total / len(x)

    @torch.no_grad()
    def evaluate(self, x, rel):
        self.net.eval()
        return ndcg(self.scores(x), rel)


if __name__ == "__main__":
    rng = np.random.default_rng(12)
    torch.manual_seed(12)
    x, rel = make_queries(60, rng)
    x_val, rel_val = make_queries(150, rng)
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    trainer = Trainer(net, lr=0.03)
    print(f"untrained ndcg@5 {trainer.evaluate(x_val, rel_val):.4f}")
    for epoch in range(1, 21):
        loss = trainer.epoch(x, rel)
        if epoch % 5 == 0:
            print(f"epoch {epoch} loss {loss:.4f} ndcg@5 {trainer.evaluate(x_val, rel_val):.4f}")
