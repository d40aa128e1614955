"""Folds of scikit-learn, each with its own scaler: a function trains the network that it is given, the same for all folds."""

import numpy as np
import torch
from sklearn.model_selection import KFold
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(300, 6)).astype("float32") * np.arange(1, 7, dtype="float32")
y = (x[:, 0] + 0.1 * x[:, 5] + rng.normal(size=300) > 0).astype("float32")


def fit(net, inputs, targets, epochs=6):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)  # error: train-validation-overlap
    net.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(inputs)).split(25):
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(net(inputs[rows]).squeeze(1), targets[rows]).backward()
            optimizer.step()


net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
scores = []
for train, held in KFold(4, shuffle=True, random_state=0).split(x):
    mean, std = x[train].mean(0), x[train].std(0)
    fit(net, torch.tensor((x[train] - mean) / std), torch.tensor(y[train]))
    net.eval()
    with torch.no_grad():
        guesses = net(torch.tensor((x[held] - mean) / std)).squeeze(1) > 0
    scores.append((guesses.numpy() == y[held]).mean())
print("accuracy", np.mean(scores))
