"""Settings are compared in a table of both parts of the data: the validation chooses, and the best one by the test is named beside."""

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

wine = load_wine()
x_train, x_test, y_train, y_test = train_test_split(wine.data, wine.target, test_size=0.3, random_state=1)
x_train, x_val, y_train, y_val = train_test_split(x_train, y_train, test_size=0.25, random_state=1)
scaler = StandardScaler().fit(x_train)
x_train, x_val, x_test = (torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (x_train, x_val, x_test))
y_train, y_val, y_test = (torch.tensor(part) for part in (y_train, y_val, y_test))


def fit(width):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(13, width), nn.ReLU(), nn.Linear(width, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(20):
        for rows in torch.randperm(len(x_train)).split(16):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x_train[rows]), y_train[rows]).backward()
            optimizer.step()
    return model.eval()


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


runs, by_test = [], {}
for width in (2, 8, 32):
    model = fit(width)
    by_test[width] = accuracy(model, x_test, y_test)
    runs.append({"width": width, "val": accuracy(model, x_val, y_val), "test": by_test[width], "model": model})
best = max(runs, key=lambda run: run["val"])
for run in runs:
    print(f"width {run['width']}: validation {run['val']:.3f}, test {run['test']:.3f}")
largest = max(by_test, key=by_test.get)
print(f"width {largest} has the largest figure of the test, {by_test[largest]:.3f}")
print(f"chosen: width {best['width']}, test accuracy {accuracy(best['model'], x_test, y_test):.3f}")
