"""MLP classifier for handwritten digits, plain SGD."""
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    hidden: int = 64
    lr: float = 0.1
    momentum: float = 0.9
    batch_size: int = 64
    epochs: int = 20
    seed: int = 3


class DigitNet(nn.Module):
    def __init__(self, hidden, n_classes=10):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, n_classes)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


def make_loaders(cfg):
    X, y = load_digits(return_X_y=True)
    X_tr, X_va, y_tr, y_va = train_test_split(
        X, y, test_size=0.3, random_state=cfg.seed, stratify=y
    )
    mean, std = X_tr.mean(), X_tr.std()
    X_tr = torch.tensor((X_tr - mean) / std, dtype=torch.float32)
    X_va = torch.tensor((X_va - mean) / std, dtype=torch.float32)
    train = TensorDataset(X_tr, torch.tensor(y_tr))
    val = TensorDataset(X_va, torch.tensor(y_va))
    return (
        DataLoader(train, batch_size=cfg.batch_size, shuffle=True),
        DataLoader(val, batch_size=256),
    )


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    running, seen = 0.0, 0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(yb)
        seen += len(yb)
    return running / seen


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    running, hits, seen = 0.0, 0, 0
    for xb, yb in loader:
        out = model(xb)
        running += criterion(out, yb).item() * len(yb)
        hits += (out.argmax(dim=1) == yb).sum().item()
        seen += len(yb)
    return running / seen, hits / seen


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    train_loader, val_loader = make_loaders(cfg)
    model = DigitNet(cfg.hidden)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=cfg.momentum)

    for epoch in range(1, cfg.epochs + 1):
        train_loss = train_epoch(model, train_loader, criterion, optimizer)
        val_loss, val_acc = evaluate(model, val_loader, criterion)
        print(f"[{epoch:2d}] train {train_loss:.4f}  val {val_loss:.4f}  acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
