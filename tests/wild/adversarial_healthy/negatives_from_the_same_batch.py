"""Pairs of different samples on purpose: mutual information, random pairs, conditional generators, styles, same or not."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 8)
y = (x @ torch.randn(8, 4)).argmax(1)
value = x @ torch.randn(8) + 0.1 * torch.randn(320)
loader = DataLoader(TensorDataset(x, value[:, None], y), batch_size=32, shuffle=True)


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, outputs))


score, scorer, editor, classes, encoder = network(9, 1), network(8, 1), network(12, 8), network(8, 4), network(8, 6)
networks = nn.ModuleList([score, scorer, editor, classes, encoder])
optimizer = torch.optim.Adam(networks.parameters(), lr=1e-3)


def mutual_information(x, v, y):
    joint, marginal = score(torch.cat([x, v], 1)), score(torch.cat([x, v[torch.randperm(len(v))]], 1))
    return F.binary_cross_entropy_with_logits(joint, torch.ones_like(joint)) + F.softplus(marginal).mean()


def random_pairs(x, v, y):
    out, other = scorer(x), torch.randperm(len(x))
    return F.mse_loss(out - out[other], v - v[other])


def random_comparisons(x, v, y):
    other = torch.randperm(len(x))
    return F.margin_ranking_loss(scorer(x)[:, 0], scorer(x[other])[:, 0], (v - v[other]).sign()[:, 0], margin=0.1)


def attributes_of_others(x, v, y):
    wanted = y[torch.randperm(len(y))]
    changed = editor(torch.cat([x, F.one_hot(wanted, 4).float()], 1))
    back = editor(torch.cat([changed, F.one_hot(y, 4).float()], 1))
    return F.cross_entropy(classes(x), y) + F.cross_entropy(classes(changed), wanted) + F.l1_loss(back, x)


def same_or_not(x, v, y):
    other = torch.randperm(len(x))
    alike = (encoder(x) * encoder(x[other])).sum(1)
    return F.binary_cross_entropy_with_logits(alike, (y == y[other]).float())


def consistent_beside_the_classes(x, v, y):
    out = classes(x)
    turned = classes(x.flip(0))
    return F.cross_entropy(out, y) + F.kl_div(turned.flip(0).log_softmax(1), out.detach().softmax(1), reduction="batchmean")


makers = mutual_information, random_pairs, random_comparisons, attributes_of_others, same_or_not, consistent_beside_the_classes
for make in makers:
    for epoch in range(3):
        for batch in loader:
            loss = make(*batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(make.__name__, loss.item())
