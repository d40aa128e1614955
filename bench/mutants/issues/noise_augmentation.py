from dataclasses import dataclass

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset


@dataclass
class TrainConfig:
    epochs: int = 14
    batch_size: int = 64
    lr: float = 2e-3
    noise: float = 0.15
    seed: int = 23


class DigitImages(Dataset):
    def __init__(self, images, labels, noise=0.0):
        self.images = torch.as_tensor(images, dtype=torch.float32).unsqueeze(1) / 16.0
        self.labels = torch.as_tensor(labels)
        self.noise = noise

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.noise > 0:
            image = image + torch.randn_like(image) * self.noise
            image = image * torch.empty(1).uniform_(0.8, 1.2)
        return image, self.labels[index]


class SmallConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Linear(24 * 4, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in loader:
            correct += (model(images).argmax(1) == labels).sum().item()
    return correct / len(loader.dataset)


def main():
    cfg = TrainConfig()
    torch.manual_seed(cfg.seed)
    digits = load_digits()
    x_train, x_val, y_train, y_val = train_test_split(
        digits.images, digits.target, test_size=0.3, stratify=digits.target, random_state=cfg.seed)
    train_set = DigitImages(x_train, y_train, noise=cfg.noise)
    val_set = DigitImages(x_val, y_val)
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=256)

    model = SmallConvNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        total = 0.0
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        if epoch % 2 == 0:
            print(f"epoch {epoch:2d}  train loss {total / len(train_set):.4f}  "
                  f"val acc {evaluate(model, val_loader):.4f}")


if __name__ == "__main__":
    main()
