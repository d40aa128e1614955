"""Hinges of positive and negative pairs: similarities, distances, scores that are distances, and mined pairs."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
centres = 2 * torch.randn(6, 10)
labels = torch.arange(6).repeat_interleave(5)


def of_similarities(z, pos, neg):
    sim_pos, sim_neg = F.cosine_similarity(z, pos), F.cosine_similarity(z, neg)
    return torch.relu(sim_neg - sim_pos + 0.3).mean()


def of_distances(z, pos, neg):
    d_pos = (z - pos).pow(2).sum(1)
    d_neg = (z - neg).pow(2).sum(1)
    return torch.clamp(d_pos - d_neg + 0.5, min=0).mean()


def of_angles(z, pos, neg):
    d_pos = 1 - F.cosine_similarity(z, pos)
    d_neg = 1 - F.cosine_similarity(z, neg)
    return F.relu(d_pos - d_neg + 0.3).mean()


def score(head, relation, tail):
    return (head + relation - tail).norm(p=1, dim=1)


relation = nn.Parameter(torch.zeros(8))


def of_translations(z, pos, neg):
    pos_score = score(z, relation, pos)
    neg_score = score(z, relation, neg)
    return F.relu(1 + pos_score - neg_score).mean()


def hardest(z, pos, neg):
    dist = torch.cdist(z, z)
    same = labels[:, None] == labels[None, :]
    hardest_pos = dist.masked_fill(~same, -1.0).max(dim=1).values
    hardest_neg = dist.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_pos - hardest_neg + 0.3).mean()


for loss_of in (of_similarities, of_distances, of_angles, of_translations, hardest):
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
    optimizer = torch.optim.Adam([*net.parameters(), relation], lr=1e-3)
    for step in range(60):
        x = centres[labels] + torch.randn(30, 10)
        positive = centres[labels] + torch.randn(30, 10)
        negative = centres[(labels + 1 + torch.randint(5, (30,))) % 6] + torch.randn(30, 10)
        loss = loss_of(net(x), net(positive), net(negative))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
