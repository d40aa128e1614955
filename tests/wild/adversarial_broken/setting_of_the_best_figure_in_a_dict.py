"""Widths and rates are compared in a dict of figures; the validation samples only stop the training."""

from itertools import product

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

wine = load_wine()
train_x, test_x, train_y, test_y = train_test_split(wine.data, wine.target, test_size=0.3, random_state=1)
train_x, val_x, train_y, val_y = train_test_split(train_x, train_y, test_size=0.25, random_state=1)
scaler = StandardScaler().fit(train_x)
train_x, val_x, test_x = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (train_x, val_x, test_x))
train_y, val_y, test_y = (torch.tensor(part) for part in (train_y, val_y, test_y))


def build_and_fit(setting):
    width, lr = setting
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(13, width), nn.ReLU(), nn.Linear(width, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    least, patience = float("inf"), 0
    for epoch in range(40):
        model.train()
        for rows in torch.randperm(len(train_x)).split(16):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(train_x[rows]), train_y[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val_loss = nn.functional.cross_entropy(model(val_x), val_y).item()
        patience = 0 if val_loss < least else patience + 1
        least = min(least, val_loss)
        if patience == 5:
            break
    return model


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


scores = {}
for setting in product((4, 16), (0.001, 0.03)):
    scores[setting] = accuracy(build_and_fit(setting), test_x, test_y)
best_setting = max(scores, key=scores.get)  # error: chosen-without-validation
final_model = build_and_fit(best_setting)
print(f"best setting {best_setting}, test accuracy {accuracy(final_model, test_x, test_y):.3f}")
