"""Ordinal regression with cumulative logits on diabetes progression levels."""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


class CumulativeNet(nn.Module):
    """One shared score and ordered thresholds."""

    def __init__(self, n_in, n_levels):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(n_in, 16), nn.ReLU(), nn.Linear(16, 1, bias=False))
        self.bias = nn.Parameter(torch.linspace(1.0, -1.0, n_levels - 1))

    def forward(self, x):
        return self.score(x) + self.bias


def to_levels(y, n_levels):
    """Task k asks whether the level is above k."""
    ks = torch.arange(n_levels - 1)
    return (y[:, None] > ks[None, :]).float()


def predict(logits):
    return (torch.sigmoid(logits) > 0.5).sum(dim=1)


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--levels", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args(argv)
    torch.manual_seed(1)

    x, y = load_diabetes(return_X_y=True)
    x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.3, random_state=1)
    cuts = np.quantile(y_train, np.linspace(0, 1, args.levels + 1)[1:-1])
    l_train = torch.tensor(np.digitize(y_train, cuts))
    l_val = torch.tensor(np.digitize(y_val, cuts))
    scaler = StandardScaler().fit(x_train)
    x_train = torch.tensor(scaler.transform(x_train), dtype=torch.float32)
    x_val = torch.tensor(scaler.transform(x_val), dtype=torch.float32)

    model = CumulativeNet(x_train.shape[1], args.levels)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(len(x_train)).split(32):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(
                model(x_train[idx]), to_levels(l_train[idx], args.levels)
            )
            loss.backward()
            optimizer.step()
        if (epoch + 1) % 15 == 0:
            print(f"epoch {epoch + 1} last batch loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        level = predict(model(x_val))
    print(f"mean absolute level error {(level - l_val).abs().float().mean():.4f}")
    print(f"exact {(level == l_val).float().mean():.4f}")
    print("predicted level counts", torch.bincount(level, minlength=args.levels).tolist())


if __name__ == "__main__":
    main()
