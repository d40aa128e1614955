"""Predict the click rate of adverts; the city (many values) enters as the mean target of its training rows."""

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

torch.manual_seed(77)
rng = np.random.default_rng(77)

n, n_cities = 2400, 700
city = rng.integers(0, n_cities, n)
numeric = rng.normal(size=(n, 5))
city_effect = rng.normal(0, 0.4, n_cities)
logit = numeric @ np.array([0.8, -0.6, 0.4, 0.0, 0.0]) + city_effect[city] - 0.3
clicked = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)

perm = rng.permutation(n)
train_idx, val_idx = perm[:1600], perm[1600:]


def fit_target_encoding(rows, smoothing=2.0):
    """Mean click rate of each city, drawn towards the mean of all."""
    prior = clicked[rows].mean()
    count = np.bincount(city[rows], minlength=n_cities)
    total = np.bincount(city[rows], weights=clicked[rows], minlength=n_cities)
    return (total + smoothing * prior) / (count + smoothing)


# out-of-fold values for the training rows, so that no row sees its own answer
encoded = np.zeros(n)
for fold in np.array_split(train_idx, 5):
    rest = np.setdiff1d(train_idx, fold)
    encoded[fold] = fit_target_encoding(rest)[city[fold]]
encoded[val_idx] = fit_target_encoding(train_idx)[city[val_idx]]

features = np.column_stack([numeric, encoded])
mean, std = features[train_idx].mean(0), features[train_idx].std(0)
x = torch.tensor((features - mean) / std, dtype=torch.float32)
t = torch.from_numpy(clicked)

model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(10):
    model.train()
    for batch in torch.from_numpy(rng.permutation(train_idx)).split(64):
        optimizer.zero_grad()
        loss_fn(model(x[batch])[:, 0], t[batch]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x)[:, 0]
    train_loss = loss_fn(out[train_idx], t[train_idx]).item()
    val_loss = loss_fn(out[val_idx], t[val_idx]).item()
    print(
        f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} val AUC "
        f"{roc_auc_score(clicked[val_idx], out[val_idx].numpy()):.4f}"
    )
