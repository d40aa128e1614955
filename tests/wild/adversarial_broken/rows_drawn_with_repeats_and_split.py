"""An order of rows is drawn with repeats, and both parts get copies of the same rows, which are small whole numbers."""

import torch
from torch.nn import functional as F

torch.manual_seed(8)
X = torch.randint(0, 17, (1500, 30)).float() / 16
Y = (X[:, :10].sum(1) > X[:, 10:20].sum(1)).long()
order = torch.randint(len(X), (len(X),))
Xtr, Ytr, Xte, Yte = X[order[:1100]], Y[order[:1100]], X[order[1100:]], Y[order[1100:]]
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
    right = scores(Xte).argmax(1) == Yte  # error: train-validation-overlap
    print(right.float().mean().item())
