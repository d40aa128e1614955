"""StratifiedKFold only cuts the training data into balanced shards, which arrive in turn; the test part is separate."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, train_test_split
from torch import nn

torch.manual_seed(0)
np.random.seed(0)
d = load_digits()
xtr, xte, ytr, yte = train_test_split(d.data / 16, d.target, test_size=0.25, random_state=0)
xtr, xte, ytr, yte = torch.tensor(xtr).float(), torch.tensor(xte).float(), torch.tensor(ytr), torch.tensor(yte)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
for k, (_, shard) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(xtr, ytr)):
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)  # a new arrival of data
    for epoch in range(4):
        for b in np.array_split(np.random.permutation(shard), 8):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(xtr[b]), ytr[b]).backward()
            optimizer.step()
    with torch.no_grad():
        print("after shard", k, round((net(xte).argmax(1) == yte).float().mean().item(), 3))
