import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


class DigitNet(nn.Module):
    def __init__(self, hidden=96, p=0.5):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 10)
        self.p = p

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.dropout(x, p=self.p, training=self.training)
        x = F.relu(self.fc2(x))
        x = F.dropout(x, p=self.p, training=self.training)
        return self.fc3(x)


def get_loaders(batch_size, seed):
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X_train)

    def to_set(features, labels):
        return TensorDataset(
            torch.tensor(scaler.transform(features), dtype=torch.float32),
            torch.tensor(labels, dtype=torch.long))

    return (DataLoader(to_set(X_train, y_train), batch_size=batch_size, shuffle=True),
            DataLoader(to_set(X_test, y_test), batch_size=256))


def train(model, loader, optimizer):
    model.train()
    running, seen = 0.0, 0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * xb.size(0)
        seen += xb.size(0)
    return running / seen


def test(model, loader):
    model.eval()
    loss, correct, seen = 0.0, 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            out = model(xb)
            loss += F.cross_entropy(out, yb, reduction="sum").item()
            correct += (out.argmax(1) == yb).sum().item()
            seen += xb.size(0)
    return loss / seen, correct / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_loader, test_loader = get_loaders(args.batch_size, args.seed)
    model = DigitNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        train_loss = train(model, train_loader, optimizer)
        test_loss, test_acc = test(model, test_loader)
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1}: train {train_loss:.4f} "
                  f"test {test_loss:.4f} acc {test_acc:.4f}")


if __name__ == "__main__":
    main()
