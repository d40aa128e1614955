"""A reward model from pairwise preferences (Bradley-Terry), then best-of-n from a sampler: scoring in eval mode, margins reported."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class RewardModel(nn.Module):
    def __init__(self, vocab, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.score = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.1), nn.Linear(width, 1))

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1)
        pooled = (self.embed(ids) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.score(pooled).squeeze(-1)


class Preferences:
    """Pairs of answers; people like words with high numbers, and short answers a little."""

    def __init__(self, seed, vocab=30, length=8):
        self.g, self.vocab, self.length = torch.Generator().manual_seed(seed), vocab, length
        self.taste = torch.linspace(-1, 1, vocab)

    def answers(self, n):
        ids = torch.randint(1, self.vocab, (n, self.length), generator=self.g)
        lengths = torch.randint(3, self.length + 1, (n, 1), generator=self.g)
        return ids * (torch.arange(self.length) < lengths)

    def true_reward(self, ids):
        return (self.taste[ids] * (ids != 0)).sum(1) - 0.05 * (ids != 0).sum(1)

    def pairs(self, n):
        a, b = self.answers(n), self.answers(n)
        p = torch.sigmoid(2 * (self.true_reward(a) - self.true_reward(b)))
        first = torch.bernoulli(p, generator=self.g).bool()[:, None]
        return torch.where(first, a, b), torch.where(first, b, a)


def fit(model, source, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for step in range(steps):
        better, worse = source.pairs(64)
        margin = model(better) - model(worse)
        loss = -F.logsigmoid(margin).mean() + 1e-3 * margin.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step} loss {loss.item():.3f} accuracy {(margin > 0).float().mean().item():.3f}")


def best_of(model, source, n, prompts=50):
    model.eval()
    chosen = []
    for _ in range(prompts):
        candidates = source.answers(n)
        with torch.no_grad():
            chosen.append(candidates[model(candidates).argmax()])
    return source.true_reward(torch.stack(chosen)).mean().item()


torch.manual_seed(0)
source = Preferences(0)
model = RewardModel(source.vocab)
fit(model, source, 180)
for n in (1, 4, 16):
    print(f"best of {n}: true reward {best_of(model, source, n):.3f}")
