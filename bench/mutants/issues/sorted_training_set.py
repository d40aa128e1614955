import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset


class DigitFolder(Dataset):
    """Pictures listed class by class, as a folder per class would give them."""

    def __init__(self, images, targets):
        self.samples = []
        for label in sorted(set(targets.tolist())):
            for image in images[targets == label]:
                self.samples.append((torch.tensor(image, dtype=torch.float32).unsqueeze(0) / 16.0, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        return self.fc(x.flatten(1))


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total, correct = 0.0, 0
    for images, targets in loader:
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(targets)
        correct += (outputs.argmax(1) == targets).sum().item()
    return total / len(loader.dataset), correct / len(loader.dataset)


def validate(model, loader, criterion):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for images, targets in loader:
            outputs = model(images)
            total += criterion(outputs, targets).item() * len(targets)
            correct += (outputs.argmax(1) == targets).sum().item()
    return total / len(loader.dataset), correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description="digit folder training")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    digits = load_digits()
    x_train, x_val, y_train, y_val = train_test_split(
        digits.images, digits.target, test_size=0.25, stratify=digits.target, random_state=args.seed)
    train_loader = DataLoader(DigitFolder(x_train, y_train), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(DigitFolder(x_val, y_val), batch_size=args.batch_size)

    model = ConvNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        train_loss, train_acc = train_one_epoch(model, train_loader, criterion, optimizer)
        val_loss, val_acc = validate(model, val_loader, criterion)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}: train {train_loss:.4f}/{train_acc:.4f}  val {val_loss:.4f}/{val_acc:.4f}")


if __name__ == "__main__":
    main()
