"""Losses by hand with other samples of the batch: mixup, negatives by a permutation, differences of pairs, a swapped style."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 8)
words = torch.tanh(x @ torch.randn(8, 6))
value, kind = x @ torch.randn(8), (x @ torch.randn(8, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, words, value, kind), batch_size=32, shuffle=True)


def mixup(net, x, words, value, kind):
    order, hot = torch.randperm(len(x)), F.one_hot(kind, 4)
    log_p = net(0.7 * x + 0.3 * x[order])[:, :4].log_softmax(1)
    return -(0.3 * hot[order] * log_p).sum(1).mean() - (0.7 * hot * log_p).sum(1).mean()


def negatives(net, x, words, value, kind):
    image = F.normalize(net(x)[:, :6], dim=1)
    wrong = (image * words.roll(1, 0)).sum(1)
    return (0.2 + wrong - (image * words).sum(1)).relu().mean()


def differences(net, x, words, value, kind):
    out, order = net(x)[:, 0], torch.randperm(len(x))
    return ((out - out[order]) - (value - value[order])).square().mean()


def advantages(net, x, words, value, kind):
    log_p = net(x)[:, :4].log_softmax(1)
    actions = torch.distributions.Categorical(logits=log_p.detach()).sample()
    gain = (actions == kind).float()
    return -(log_p[torch.arange(len(x)), actions] * (gain - gain.mean())).mean()


def weighted(net, x, words, value, kind):
    rare = (1 / torch.bincount(kind, minlength=4).clamp_min(1).float())[kind]
    return (rare * (net(x)[:, 0] - value).abs()).mean() + ((net(x)[:, 1] - value.mean()) ** 2).mean()


def consistent(net, x, words, value, kind):
    with torch.no_grad():
        teacher = net(x)
    return ((net(x + 0.1 * torch.randn_like(x)) - teacher) ** 2).mean() + ((net(x)[:, :6] - words) ** 2).mean()


for make in (mixup, negatives, differences, advantages, weighted, consistent):
    net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(3):
        for batch in loader:
            loss = make(net, *batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(make.__name__, loss.item())
