"""Digits with mixup and a cosine schedule."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 12


def mixup(x, y, alpha, rng):
    lam = float(rng.beta(alpha, 3 * alpha))
    perm = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def mixup_loss(criterion, out, y_a, y_b, lam):
    return lam * criterion(out, y_a) + (1 - lam) * criterion(out, y_b)


def accuracy(model, loader):
    model.eval()
    hits, n, nll = 0, 0, 0.0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            hits += (out.argmax(1) == y).sum().item()
            nll += nn.functional.cross_entropy(out, y, reduction="sum").item()
            n += y.numel()
    return hits / n, nll / n


def main():
    torch.manual_seed(42)
    rng = np.random.default_rng(42)
    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x / 16.0, y, test_size=0.4, stratify=y, random_state=42)
    train = TensorDataset(torch.tensor(x_train).float(), torch.tensor(y_train))
    test = TensorDataset(torch.tensor(x_test).float(), torch.tensor(y_test))
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    test_loader = DataLoader(test, batch_size=256)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = CosineAnnealingLR(optimizer, T_max=EPOCHS)
    for epoch in range(EPOCHS):
        model.train()
        losses = []
        for xb, yb in train_loader:
            mixed, y_a, y_b, lam = mixup(xb, yb, 0.4, rng)
            loss = mixup_loss(criterion, model(mixed), y_a, y_b, lam)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} mixup loss {np.mean(losses):.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    acc, nll = accuracy(model, test_loader)
    print(f"test accuracy {acc:.4f} nll {nll:.4f}")


if __name__ == "__main__":
    main()
