"""Pretrain on the digits 0 to 4, then fine-tune on few images of the digits 5 to 9."""

import gzip
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

ROOT = os.path.join(os.environ.get("TRUESTEP_DATA", "data"), "mnist")


def load_digits(prefix, classes, per_class):
    with gzip.open(f"{ROOT}/{prefix}-images-idx3-ubyte.gz") as f:
        images = np.frombuffer(f.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28).astype(np.float32)
    with gzip.open(f"{ROOT}/{prefix}-labels-idx1-ubyte.gz") as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8).astype(np.int64)
    chosen = np.concatenate([np.flatnonzero(labels == c)[:per_class] for c in classes])
    x = torch.from_numpy((images[chosen] / 255 - 0.13) / 0.31)
    y = torch.from_numpy(np.searchsorted(classes, labels[chosen]))
    return TensorDataset(nn.functional.avg_pool2d(x, 2), y)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        return x.flatten(1)


class Classifier(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(32 * 9, num_classes))

    def forward(self, x):
        return self.head(self.backbone(x))


def run_epoch(model, loader, optimizer, freeze_backbone=False):
    model.train()
    if freeze_backbone:
        model.backbone.eval()
    loss_sum = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(y)
    return loss_sum / len(loader.dataset)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(dim=1) == y).sum().item()
    return correct / len(loader.dataset)


def pretrain(path):
    train_loader = DataLoader(load_digits("train5k", range(5), 260), batch_size=64, shuffle=True)
    test_loader = DataLoader(load_digits("t10k", range(5), 100), batch_size=200)
    model = Classifier(num_classes=5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        loss = run_epoch(model, train_loader, optimizer)
        print(f"pretrain {epoch}: loss {loss:.4f} accuracy {accuracy(model, test_loader):.4f}")
    torch.save(model.state_dict(), path)


def finetune(path):
    train_loader = DataLoader(load_digits("train5k", range(5, 10), 60), batch_size=32, shuffle=True)
    test_loader = DataLoader(load_digits("t10k", range(5, 10), 120), batch_size=250)
    model = Classifier(num_classes=10)
    state = torch.load(path)
    weights = {k.removeprefix("backbone."): v for k, v in state.items() if k.startswith("backbone.")}
    model.backbone.load_state_dict(weights)
    model.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(32 * 9, 64), nn.ReLU(), nn.Linear(64, 5))

    for parameter in model.backbone.parameters():
        parameter.requires_grad_(False)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=2e-3)
    for epoch in range(6):
        loss = run_epoch(model, train_loader, optimizer, freeze_backbone=True)
        print(f"head {epoch}: loss {loss:.4f} accuracy {accuracy(model, test_loader):.4f}")

    for parameter in model.backbone.parameters():
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(
        [
            {"params": model.backbone.parameters(), "lr": 2e-4},
            {"params": model.head.parameters(), "lr": 1e-3},
        ]
    )
    for epoch in range(5):
        loss = run_epoch(model, train_loader, optimizer)
        print(f"all {epoch}: loss {loss:.4f} accuracy {accuracy(model, test_loader):.4f}")


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pretrained.pt")
        pretrain(path)
        finetune(path)


if __name__ == "__main__":
    main()
