"""Predict the price class of a shopping basket: self-attention written by hand over padded baskets."""

import math

import numpy as np
import torch
from torch import nn

rng = np.random.RandomState(5)
torch.manual_seed(5)
N_ITEMS, MAX_ITEMS = 40, 12
prices = rng.gamma(2.0, 2.0, size=N_ITEMS + 1)
prices[0] = 0


def baskets(n):
    items = np.zeros((n, MAX_ITEMS), dtype=np.int64)
    mean_price = np.zeros(n)
    for i in range(n):
        k = rng.randint(2, MAX_ITEMS + 1)
        items[i, :k] = rng.randint(1, N_ITEMS + 1, size=k)
        mean_price[i] = prices[items[i, :k]].mean()
    return torch.from_numpy(items), mean_price


items, mean_price = baskets(2000)
edges = np.quantile(mean_price[:1500], [0.25, 0.5, 0.75])
labels = torch.from_numpy(np.digitize(mean_price, edges))
x_train, y_train, x_test, y_test = items[:1500], labels[:1500], items[1500:], labels[1500:]


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(mask == 0, -1e9)
    return scores.softmax(dim=-1) @ v


class BasketModel(nn.Module):
    """A query token looks at the items of the basket."""

    def __init__(self, d=24):
        super().__init__()
        self.emb = nn.Embedding(N_ITEMS + 1, d)
        self.query = nn.Parameter(torch.randn(1, 1, d) * 0.1)
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.head = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, items):
        e = self.emb(items)
        mask = (items != 0).unsqueeze(1)
        q = self.q(self.query).expand(items.size(0), -1, -1)
        return self.head(attention(q, self.k(e), self.v(e), mask).squeeze(1))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


model = BasketModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(16):
    model.train()
    losses = []
    for idx in torch.randperm(len(x_train)).split(50):
        optimizer.zero_grad()
        loss = loss_fn(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 0:
        print(f"Epoch {epoch + 1}: loss={np.mean(losses):.4f} test_acc={accuracy(model, x_test, y_test):.4f}")
print("final train accuracy", round(accuracy(model, x_train, y_train), 4))
print("final test accuracy", round(accuracy(model, x_test, y_test), 4))
