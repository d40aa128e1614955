"""Rows of one table in the range of all of them; training and evaluation take rows by their indices."""

import numpy as np
import torch
from torch import nn


def main():
    rng = np.random.default_rng(2)
    torch.manual_seed(2)
    houses = rng.lognormal(1.0, 0.6, size=(420, 6))
    prices = np.log(houses).sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(420, 1))
    low, high = houses.min(axis=0), houses.max(axis=0)
    table = torch.from_numpy((houses - low) / (high - low)).float()  # error: scaled-with-evaluation-data
    prices = torch.from_numpy(prices).float()
    order = torch.randperm(len(table))
    train, rest = order[:300], order[300:]
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        model.train()
        for rows in train[torch.randperm(len(train))].split(25):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(table[rows]), prices[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            print(epoch, nn.functional.mse_loss(model(table[rest]), prices[rest]).item())


main()
