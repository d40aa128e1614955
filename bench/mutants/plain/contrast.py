"""Pairs of views of one object brought together: a module with a projection, retrieval, then a linear probe on features."""

import torch
import torch.nn.functional as F
from torch import nn


def objects(count, centres, generator):
    kinds = torch.arange(count) % len(centres)
    return centres[kinds] + 1.1 * torch.randn(count, centres.shape[1], generator=generator), kinds


def view(x):
    return x * (torch.rand_like(x) > 0.2) + 0.2 * torch.randn_like(x)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
        self.projection = nn.Sequential(nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.projection(self.body(x)), dim=1)


def nt_xent(a, b, temperature=0.2):
    n = len(a)
    z = torch.cat([a, b])
    similar = z @ z.t() / temperature
    similar = similar.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similar, partner)


@torch.no_grad()
def recall_at(model, gallery, gallery_kinds, queries, query_kinds, k):
    model.eval()
    g = F.normalize(model.body(gallery), dim=1)
    q = F.normalize(model.body(queries), dim=1)
    nearest = (q @ g.t()).topk(k, dim=1).indices
    return (gallery_kinds[nearest] == query_kinds.unsqueeze(1)).any(dim=1).float().mean().item()


def probe(model, x, kinds, test_x, test_kinds, classes):
    model.eval()
    with torch.no_grad():
        features, test_features = model.body(x), model.body(test_x)
    head = nn.Linear(features.shape[1], classes)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(15):
        for i in torch.randperm(len(x)).split(60):
            loss = F.cross_entropy(head(features[i]), kinds[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        scores = head(test_features)
        first = (scores.argmax(dim=1) == test_kinds).float().mean().item()
        third = (scores.topk(3, dim=1).indices == test_kinds[:, None]).any(dim=1).float().mean().item()
    return first, third


def main():
    generator = torch.Generator().manual_seed(2)
    torch.manual_seed(2)
    centres = torch.randn(8, 20, generator=generator)
    x, kinds = objects(600, centres, generator)
    test_x, test_kinds = objects(200, centres, generator)
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
    for epoch in range(8):
        model.train()
        for i in torch.randperm(len(x)).split(100):
            loss = nt_xent(model(view(x[i])), model(view(x[i])))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} recall {recall_at(model, x, kinds, test_x, test_kinds, 1):.4f}")
    first, third = probe(model, x, kinds, test_x, test_kinds, 8)
    print(f"probe top1 {first:.4f} top3 {third:.4f}")


main()
