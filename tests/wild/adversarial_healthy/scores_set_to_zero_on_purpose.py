"""Healthy: scores of zero before a softmax that lose their weight behind it, or are limits, dropouts and copies."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
PLACES, WIDTH = 9, 12


def batch(count=32):
    x = torch.randn(count, PLACES, 4)
    keep = (torch.arange(PLACES) < torch.randint(2, PLACES + 1, (count, 1))).float()
    return x, keep, ((x[..., 0] * keep).sum(1) > 0).long()


def over_sum(weights):
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)


def kept_by_assignment(scores, keep):
    weights = (scores * keep[:, None]).softmax(-1).clone()
    weights[(keep == 0)[:, None].expand_as(weights)] = 0
    return over_sum(weights)


def kept_by_einsum(scores, keep):
    weights = (scores * keep[:, None]).softmax(-1) + 1e-8
    return over_sum(torch.einsum("bqk,bk->bqk", weights, keep))


def kept_by_logarithms(scores, keep):
    return over_sum((scores * keep[:, None]).log_softmax(-1).exp() * keep[:, None])


def kept_in_heads(scores, keep):
    several = scores[:, None].expand(-1, 2, -1, -1) * keep[:, None, None]
    weights = several.reshape(-1, PLACES, PLACES).softmax(-1) * keep.repeat_interleave(2, 0)[:, None]
    return over_sum(weights).view(-1, 2, PLACES, PLACES).mean(1)


def limited(scores, keep):
    bound = scores.std().item() / 2
    return torch.where(scores > bound, bound, scores).masked_fill(keep[:, None] == 0, -1e9).softmax(-1)


def limited_only(scores, keep):
    bound = scores.std().item() / 2
    return scores.masked_fill(scores > bound, bound).softmax(-1)


def dropped(scores, keep):
    return (scores * (torch.rand_like(scores) > 0.2) / 0.8).softmax(-1)


def small_ones_at_zero(scores, keep):
    return scores.masked_fill(scores.abs() < scores.std().item() / 2, 0.0).softmax(-1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Linear(4, WIDTH), nn.Linear(WIDTH, 2)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.none = nn.Parameter(torch.tensor(-0.5))

    def scores(self, x):
        h = self.embed(x)
        return self.query(h) @ self.key(h).mT / WIDTH**0.5, self.value(h)

    def forward(self, x, keep, weights_of):
        scores, values = self.scores(x)
        return self.pooled(weights_of(scores, keep) @ values, keep)

    def pooled(self, mixed, keep):
        return self.out((mixed * keep[..., None]).sum(1) / keep.sum(1, keepdim=True))

    def quotient(self, x, keep):
        scores, values = self.scores(x)
        weights = (scores * keep[:, None]).softmax(-1)
        return self.pooled((weights @ (values * keep[..., None])) / (weights @ keep[..., None]), keep)

    def learned(self, scores, keep):
        return torch.where(keep[:, None] == 0, self.none, scores).softmax(-1)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(60):
    x, keep, y = batch()
    optimizer.zero_grad()
    F.cross_entropy(net(x, keep, kept_by_assignment), y).backward()
    F.cross_entropy(net(x, keep, kept_by_einsum), y).backward()
    F.cross_entropy(net(x, keep, kept_by_logarithms), y).backward()
    F.cross_entropy(net(x, keep, kept_in_heads), y).backward()
    F.cross_entropy(net(x, keep, limited), y).backward()
    F.cross_entropy(net(x, keep, limited_only), y).backward()
    F.cross_entropy(net(x, keep, dropped), y).backward()
    F.cross_entropy(net(x, keep, small_ones_at_zero), y).backward()
    F.cross_entropy(net(x, keep, net.learned), y).backward()
    loss = F.cross_entropy(net.quotient(x, keep), y)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
