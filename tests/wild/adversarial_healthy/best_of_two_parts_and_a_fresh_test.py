"""Weights are chosen by one part and judged by another; the other program keeps a checkpoint and does not judge it again."""
import copy

import torch
from torch import nn


def evaluate(model, rows, labels):
    model.eval()
    with torch.no_grad():
        return (model(rows).argmax(1) == labels).float().mean().item()


def fit(rows, labels, held_rows, held_labels, epochs=12):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    best, best_state = 0.0, None
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(rows)).split(25):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(rows[batch]), labels[batch]).backward()
            optimizer.step()
        accuracy = evaluate(model, held_rows, held_labels)
        if accuracy > best:
            best = accuracy
            best_state = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    return model, best


torch.manual_seed(0)
x = torch.randn(500, 8)
y = (x[:, :3].sum(1) + torch.randn(500) > 0).long()
model, chosen = fit(x[:300], y[:300], x[300:400], y[300:400])
x_test, y_test = x[400:], y[400:]
print(chosen, evaluate(model, x_test, y_test))

network = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
best_acc, kept = 0.0, {}
for epoch in range(12):
    network.train()
    for batch in torch.randperm(400).split(25):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
        optimizer.step()
    acc = evaluate(network, x_test, y_test)
    if acc > best_acc:
        best_acc = acc
        kept = {"net": copy.deepcopy(network.state_dict()), "acc": acc, "epoch": epoch}
print("best", best_acc, kept["epoch"])
