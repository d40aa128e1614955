"""Rows of the training part are drawn with repeats; the rows are small whole numbers, and the test has others."""

import torch
from torch.nn import functional as F

torch.manual_seed(9)
X = torch.randint(0, 17, (1500, 30)).float() / 16
Y = (X[:, :10].sum(1) > X[:, 10:20].sum(1)).long()
order = torch.randperm(len(X))
drawn, rest = order[:1100][torch.randint(1100, (1600,))], order[1100:]
Xtr, Ytr, Xte, Yte = X[drawn], Y[drawn], X[rest], Y[rest]
first = (torch.randn(30, 48) * 0.2).requires_grad_()
second = (torch.randn(48, 2) * 0.2).requires_grad_()


def scores(x):
    return torch.relu(x @ first) @ second


optimizer = torch.optim.Adam([first, second], lr=3e-3)
for epoch in range(10):
    for rows in torch.randperm(len(Xtr)).split(50):
        optimizer.zero_grad()
        F.cross_entropy(scores(Xtr[rows]), Ytr[rows]).backward()
        optimizer.step()
with torch.no_grad():
    print((scores(Xte).argmax(1) == Yte).float().mean().item())
