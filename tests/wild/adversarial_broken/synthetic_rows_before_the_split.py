"""A rare class is filled up by points between neighbours, and the filled table is split."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from torch import nn

rng = np.random.default_rng(4)
torch.manual_seed(4)
x, y = make_classification(900, 10, n_informative=5, weights=[0.88], random_state=4)


def fill_up(x, y, neighbours=5):
    rare = x[y == 1]
    number = int((y == 0).sum()) - len(rare)
    near = NearestNeighbors(n_neighbors=neighbours + 1).fit(rare).kneighbors(rare)[1][:, 1:]
    first = rng.integers(0, len(rare), number)
    second = near[first, rng.integers(0, neighbours, number)]
    between = rare[first] + rng.random((number, 1)) * (rare[second] - rare[first])
    return np.vstack([x, between]), np.concatenate([y, np.ones(number, dtype=y.dtype)])


x, y = fill_up(x, y)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=4)  # error: train-validation-overlap
x_train, y_train = torch.tensor(x_train, dtype=torch.float32), torch.tensor(y_train)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for rows in torch.randperm(len(x_train)).split(64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x_train[rows]), y_train[rows]).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    predictions = model(torch.tensor(x_test, dtype=torch.float32)).argmax(1).numpy()
print("recall", (predictions[y_test == 1] == 1).mean())
