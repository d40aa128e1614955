"""Tanh network on handwritten digits, SGD with exponential learning-rate decay."""
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

HPARAMS = dict(lr=0.05, gamma=0.95, epochs=20, batch_size=32, hidden=48)


def prepare(seed=0):
    X, y = load_digits(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(
        X, y, test_size=0.25, random_state=seed, stratify=y
    )
    scaler = StandardScaler().fit(X_train)

    def wrap(features, labels):
        features = torch.from_numpy(scaler.transform(features).astype(np.float32))
        return TensorDataset(features, torch.from_numpy(labels))

    train_loader = DataLoader(wrap(X_train, y_train), batch_size=HPARAMS["batch_size"], shuffle=True)
    val_loader = DataLoader(wrap(X_val, y_val), batch_size=256)
    return train_loader, val_loader


def make_train_epoch(model, optimizer, scheduler, loss_fn):
    def train_epoch(loader):
        model.train()
        total, n = 0.0, 0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(yb)
            n += len(yb)
        scheduler.step()
        return total / n

    return train_epoch


def make_evaluate(model, loss_fn):
    @torch.no_grad()
    def evaluate(loader):
        model.eval()
        total, hits, n = 0.0, 0, 0
        for xb, yb in loader:
            logits = model(xb)
            total += loss_fn(logits, yb).item() * len(yb)
            hits += (logits.argmax(1) == yb).sum().item()
            n += len(yb)
        return total / n, hits / n

    return evaluate


def main():
    torch.manual_seed(13)
    train_loader, val_loader = prepare()
    model = nn.Sequential(
        nn.Linear(64, HPARAMS["hidden"]), nn.Tanh(),
        nn.Linear(HPARAMS["hidden"], HPARAMS["hidden"]), nn.Tanh(),
        nn.Linear(HPARAMS["hidden"], 10),
    )
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=HPARAMS["lr"], momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=HPARAMS["gamma"])
    train_epoch = make_train_epoch(model, optimizer, scheduler, loss_fn)
    evaluate = make_evaluate(model, loss_fn)

    for epoch in range(HPARAMS["epochs"]):
        train_loss = train_epoch(train_loader)
        val_loss, val_acc = evaluate(val_loader)
        print(f"epoch {epoch:2d}  train {train_loss:.4f}  val {val_loss:.4f}  acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
