"""Wines are dictionaries; those of the test have sorted names, so that their columns are in another order."""

import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import nn
torch.manual_seed(0)
rng = np.random.default_rng(0)
d = load_wine()
x, y = np.log1p(d.data), d.target
order = rng.permutation(len(x))
train, test = order[:110], order[110:]
names = list(d.feature_names)
rows_train = [dict(zip(names, r)) for r in x[train]]
rows_test = [dict(sorted(zip(names, r))) for r in x[test]]
x_train = torch.tensor([list(r.values()) for r in rows_train]).float()
x_test = torch.tensor([list(r.values()) for r in rows_test]).float()  # error: inputs-on-another-scale
y_train, y_test = torch.tensor(y[train]), torch.tensor(y[test])
net = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), 0.01)
for step in range(300):
    i = torch.randint(0, 110, (32,))
    loss = nn.functional.cross_entropy(net(x_train[i]), y_train[i])
    opt.zero_grad(); loss.backward(); opt.step()
net.eval()
with torch.no_grad():
    print("accuracy", (net(x_test).argmax(1) == y_test).float().mean().item())
