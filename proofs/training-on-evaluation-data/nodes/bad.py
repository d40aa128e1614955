"""Classify the nodes of a graph with random links and noisy features; 60 of them are meant for the training."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def graph(n=240):
    y = torch.randint(0, 3, (n,))
    links = (torch.rand(n, n) < torch.where(y[:, None] == y[None], 0.03, 0.01)).float() + 3 * torch.eye(n)
    return links / links.sum(1, keepdim=True), torch.randn(n, 64) + F.one_hot(y, 64), y


links, features, labels = graph()
order = torch.randperm(240)
idx_train, idx_test = order[:60], order[60:]
first, second = nn.Linear(64, 64), nn.Linear(64, 3)
model = nn.Sequential(first, nn.ReLU(), second)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _epoch in range(150):
    out = model(links @ features)
    loss = F.cross_entropy(out, labels)  # error: training-on-evaluation-data
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    out = model(links @ features)
    reported = (out[idx_test].argmax(1) == labels[idx_test]).float().mean().item()
    links, features, labels = graph(4000)
    accuracy = (model(links @ features).argmax(1) == labels).float().mean().item()
print(f"reported: {reported:.4f}, on another graph: {accuracy:.4f}")
print(f"result: {reported - accuracy:.4f}")
