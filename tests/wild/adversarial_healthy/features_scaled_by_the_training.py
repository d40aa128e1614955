"""Scaled with statistics of the training; a whole table that was published with such values; clipped ranges."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn


def fit(x_train, y_train, x_test, y_test):
    model = nn.Sequential(nn.Linear(x_train.shape[1], 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(5):
        model.train()
        for rows in torch.randperm(len(x_train)).split(20):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x_train[rows]), y_train[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = nn.functional.mse_loss(model(x_test), y_test)
    print(loss.item())


torch.manual_seed(3)
features, target = load_diabetes(return_X_y=True)
x, y = torch.tensor(features, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)[:, None]
y = (y - y[:340].mean()) / y[:340].std()
fit(x[:340], y[:340], x[340:], y[340:])
mean, std = x[:340].mean(0), x[:340].std(0)
fit((x[:340] - mean) / std, y[:340], (x[340:] - mean) / std, y[340:])
low, high = x[:340].amin(0), x[:340].amax(0)
ranged = ((x - low) / (high - low)).clamp(0, 1)
fit(ranged[:340], y[:340], ranged[340:], y[340:])
pixels = torch.from_numpy(np.random.default_rng(0).integers(0, 256, size=(442, 40)).astype(np.float32)) / 255
fit(pixels[:340], y[:340], pixels[340:], y[340:])
