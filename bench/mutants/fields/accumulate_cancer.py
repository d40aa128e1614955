"""Breast cancer classifier with gradient accumulation over micro-batches."""

import argparse

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--micro-batch", type=int, default=8)
    p.add_argument("--accumulate", type=int, default=6)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=0.08)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def load(seed, micro_batch):
    x, y = load_breast_cancer(return_X_y=True)
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.325, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(x_tr)
    x_tr = torch.tensor(scaler.transform(x_tr), dtype=torch.float32)
    x_te = torch.tensor(scaler.transform(x_te), dtype=torch.float32)
    train = TensorDataset(x_tr, torch.tensor(y_tr, dtype=torch.float32))
    return DataLoader(train, batch_size=micro_batch, shuffle=True, drop_last=True), x_te, y_te


def train_epoch(model, loader, criterion, optimizer, accumulate):
    model.train()
    running = 0.0
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, start=1):
        loss = criterion(model(x).squeeze(1), y)
        running += loss.item()
        (loss / accumulate).backward()
        if i % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    return running / len(loader)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    loader, x_te, y_te = load(args.seed, args.micro_batch)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        loss = train_epoch(model, loader, criterion, optimizer, args.accumulate)
        if epoch % 2 == 1:
            print(f"epoch {epoch + 1} loss {loss:.4f}")
    model.eval()
    with torch.no_grad():
        p = torch.sigmoid(model(x_te).squeeze(1)).double().numpy()
    print(f"test auc {roc_auc_score(y_te, p):.4f} log loss {log_loss(y_te, p):.4f}")


if __name__ == "__main__":
    main()
