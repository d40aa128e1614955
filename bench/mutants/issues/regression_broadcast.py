import argparse

import numpy as np
import torch
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser(description="Tabular regression")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--seed", type=int, default=4)
    return parser.parse_args()


def get_loaders(args):
    X, y = make_friedman1(n_samples=1500, n_features=8, noise=0.8, random_state=args.seed)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=args.seed)
    mean, std = X_train.mean(0), X_train.std(0)
    y_mean, y_std = y_train.mean(), y_train.std()

    def dataset(features, target):
        return TensorDataset(
            torch.tensor((features - mean) / std, dtype=torch.float32),
            torch.tensor((target - y_mean) / y_std, dtype=torch.float32),
        )

    train = DataLoader(dataset(X_train, y_train), batch_size=args.batch_size, shuffle=True)
    val = DataLoader(dataset(X_val, y_val), batch_size=256)
    return train, val


class Regressor(nn.Module):
    def __init__(self, n_features, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def mse(prediction, target):
    return ((prediction - target) ** 2).mean()


def validate(model, loader):
    model.eval()
    predictions, targets = [], []
    with torch.no_grad():
        for x, y in loader:
            predictions.append(model(x).reshape(-1).numpy())
            targets.append(y.numpy())
    predictions, targets = np.concatenate(predictions), np.concatenate(targets)
    return r2_score(targets, predictions), float(np.abs(targets - predictions).mean())


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    train_loader, val_loader = get_loaders(args)
    model = Regressor(8, args.hidden)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    for epoch in range(args.epochs):
        model.train()
        losses = []
        for x, y in train_loader:
            loss = mse(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        r2, mae = validate(model, val_loader)
        print(f"epoch {epoch + 1:02d} | train mse {np.mean(losses):.4f} | val r2 {r2:.4f} | val mae {mae:.4f}")


if __name__ == "__main__":
    main()
