"""Small CNN on synthetic colour pictures that are stored as (height, width, channel) bytes."""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def draw(n, rng, size=12):
    images = rng.integers(0, 60, size=(n, size, size, 3)).astype(np.float32)
    labels = rng.integers(0, 6, size=n)
    for img, label in zip(images, labels, strict=True):
        colour, shape = label % 3, label // 3
        r, c = rng.integers(1, size - 6, 2)
        if shape == 0:
            img[r : r + 5, c : c + 5, colour] += 110
        else:
            img[r + 2, c : c + 5, colour] += 110
            img[r : r + 5, c + 2, colour] += 110
        other = (colour + 1 + rng.integers(0, 2)) % 3
        rr, cc = rng.integers(1, size - 4, 2)
        img[rr : rr + 2, cc : cc + 2, other] += 110
    return images.clip(0, 255).astype(np.uint8), labels


def to_tensor(images):
    x = torch.from_numpy(images).float() / 255.0
    return x.permute(0, 3, 1, 2).contiguous()


class ShapeCNN(nn.Module):
    """Two convolutions and a global maximum."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
        )
        self.fc = nn.Linear(24, 6)

    def forward(self, x):
        return self.fc(self.features(x).amax(dim=(2, 3)))


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * y.size(0)
    return total / len(loader.dataset)


@torch.no_grad()
def test(model, loader):
    model.eval()
    right = sum((model(x).argmax(dim=1) == y).sum().item() for x, y in loader)
    return 100.0 * right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()
    torch.manual_seed(1)
    rng = np.random.default_rng(1)

    (train_images, train_labels), (test_images, test_labels) = draw(700, rng), draw(300, rng)
    train_set = TensorDataset(to_tensor(train_images), torch.from_numpy(train_labels))
    test_set = TensorDataset(to_tensor(test_images), torch.from_numpy(test_labels))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=100)

    model = ShapeCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr * 10, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, args.epochs + 1):
        loss = train_one_epoch(model, train_loader, optimizer, criterion)
        print(f"Train Epoch: {epoch}\tLoss: {loss:.4f}\tTest accuracy: {test(model, test_loader):.1f}%")


if __name__ == "__main__":
    main()
