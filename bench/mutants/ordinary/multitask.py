"""One encoder, three heads: article, group of articles, and brightness of a Fashion-MNIST image."""

import gzip
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

ROOT = os.path.join(os.environ.get("TRUESTEP_DATA", "data"), "fashion-mnist")
# T-shirt, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag, boot
GROUP = np.array([0, 1, 0, 0, 0, 2, 0, 2, 3, 2])
GROUPS = ["top", "trouser", "shoe", "bag"]
WEIGHTS = {"article": 1.0, "group": 0.5, "ink": 2.0}


def read(split, n):
    with gzip.open(f"{ROOT}/{split}-images-idx3-ubyte.gz") as f:
        images = np.frombuffer(f.read(16 + n * 784), dtype=np.uint8, offset=16).reshape(n, 1, 28, 28)
    with gzip.open(f"{ROOT}/{split}-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(8 + n), dtype=np.uint8, offset=8).astype(np.int64)
    images = images / 255.0
    return images, labels


def make_datasets():
    x_train, y_train = read("train", 2200)
    x_test, y_test = read("t10k", 1000)
    ink_train, ink_test = x_train.mean(axis=(1, 2, 3)), x_test.mean(axis=(1, 2, 3))
    ink_mean, ink_std = ink_train.mean(), ink_train.std()
    x_mean, x_std = x_train.mean(), x_train.std()

    def pack(x, y, ink):
        return TensorDataset(
            torch.tensor((x - x_mean) / x_std, dtype=torch.float32)[..., ::2, ::2],
            torch.tensor(y),
            torch.tensor(GROUP[y]),
            torch.tensor((ink - ink_mean) / ink_std, dtype=torch.float32),
        )

    return pack(x_train, y_train, ink_train), pack(x_test, y_test, ink_test)


class MultiTaskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 9, 64), nn.ReLU(), nn.Dropout(0.2),
        )
        self.article_head = nn.Linear(64, 10)
        self.group_head = nn.Linear(64, len(GROUPS))
        self.ink_head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        features = self.encoder(x)
        return {
            "article": self.article_head(features),
            "group": self.group_head(features),
            "ink": self.ink_head(features).squeeze(1),
        }


def compute_losses(out, article, group, ink, group_weights):
    return {
        "article": F.cross_entropy(out["article"], article),
        "group": F.cross_entropy(out["group"], group, weight=group_weights),
        "ink": ((out["ink"] - ink) ** 2).mean(),
    }


def evaluate(model, loader):
    model.eval()
    n = 0
    article_correct = 0
    group_correct = torch.zeros(len(GROUPS))
    group_count = torch.zeros(len(GROUPS))
    squared_error = 0.0
    with torch.no_grad():
        for x, article, group, ink in loader:
            out = model(x)
            article_correct += (out["article"].argmax(1) == article).sum().item()
            hit = (out["group"].argmax(1) == group).float()
            group_correct += torch.bincount(group, weights=hit, minlength=len(GROUPS))
            group_count += torch.bincount(group, minlength=len(GROUPS))
            squared_error += ((out["ink"] - ink) ** 2).sum().item()
            n += len(x)
    return {
        "article_acc": article_correct / n,
        "group_acc": (group_correct / group_count).mean().item(),
        "ink_rmse": (squared_error / n) ** 0.5,
    }


def main():
    torch.manual_seed(3)
    train_set, test_set = make_datasets()
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=256)

    counts = torch.bincount(train_set.tensors[2], minlength=len(GROUPS)).float()
    group_weights = counts.sum() / (len(GROUPS) * counts)

    model = MultiTaskNet()
    heads = [*model.article_head.parameters(), *model.group_head.parameters(), *model.ink_head.parameters()]
    optimizer = torch.optim.Adam(
        [{"params": model.encoder.parameters(), "lr": 2e-3}, {"params": heads, "lr": 5e-3}]
    )
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)

    for epoch in range(1, 9):
        model.train()
        sums = dict.fromkeys(WEIGHTS, 0.0)
        for x, article, group, ink in train_loader:
            losses = compute_losses(model(x), article, group, ink, group_weights)
            total = sum(WEIGHTS[name] * loss for name, loss in losses.items())
            optimizer.zero_grad()
            total.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            for name, loss in losses.items():
                sums[name] += loss.item() * len(x)
        scheduler.step()
        parts = " ".join(f"{name} {value / len(train_set):.4f}" for name, value in sums.items())
        print(f"epoch {epoch}: {parts} |", " ".join(f"{k} {v:.4f}" for k, v in evaluate(model, test_loader).items()))


if __name__ == "__main__":
    main()
