"""Functions over arrays; the weights with the smallest error are kept, by the rows of the training."""

import copy

import torch
from torch import nn


def error_of(model, inputs, targets):
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(inputs), targets).item()
    model.train()
    return error


def train(epochs):
    torch.manual_seed(0)
    inputs = torch.randn(400, 6)  # error: train-validation-overlap
    targets = inputs[:, :1] + torch.randn(400, 1)
    x_train, y_train = inputs[:300], targets[:300]
    x_val, y_val = inputs[300:], targets[300:]  # noqa: F841
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    lowest, chosen = float("inf"), None
    for _ in range(epochs):
        for rows in torch.randperm(300).split(30):
            loss = nn.functional.mse_loss(model(x_train[rows]), y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        error = error_of(model, x_train, y_train)
        if error < lowest:  # error: chosen-without-validation
            lowest = error
            chosen = copy.deepcopy(model.state_dict())
    print(f"error {lowest:.2f}")
    return chosen


train(8)
