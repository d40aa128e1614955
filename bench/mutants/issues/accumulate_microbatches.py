"""Gradient accumulation: micro-batches of 16, effective batch size 64."""
import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--micro-batch", type=int, default=16)
    p.add_argument("--accum-steps", type=int, default=4)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def load_data(seed):
    X, y = load_digits(return_X_y=True)
    X_tr, X_va, y_tr, y_va = train_test_split(
        X / 16.0, y, train_size=1280, random_state=seed, stratify=y
    )
    to_x = lambda a: torch.tensor(a, dtype=torch.float32)
    return (
        TensorDataset(to_x(X_tr), torch.tensor(y_tr)),
        TensorDataset(to_x(X_va), torch.tensor(y_va)),
    )


def evaluate(net, loader, loss_fn):
    net.eval()
    loss_sum, right, n = 0.0, 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            logits = net(xb)
            loss_sum += loss_fn(logits, yb).item() * len(yb)
            right += (logits.argmax(1) == yb).sum().item()
            n += len(yb)
    return loss_sum / n, right / n


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    train_set, val_set = load_data(args.seed)
    train_loader = DataLoader(
        train_set, batch_size=args.micro_batch, shuffle=True, drop_last=True
    )
    val_loader = DataLoader(val_set, batch_size=256)
    # 1280 / 16 = 80 micro-batches: every window of accum_steps is full
    assert len(train_loader) % args.accum_steps == 0

    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=args.momentum)

    for epoch in range(1, args.epochs + 1):
        net.train()
        running = 0.0
        optimizer.zero_grad()
        for i, (xb, yb) in enumerate(train_loader, start=1):
            loss = loss_fn(net(xb), yb)
            running += loss.item()
            (loss / args.accum_steps).backward()
            if i % args.accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        val_loss, val_acc = evaluate(net, val_loader, loss_fn)
        print(
            f"epoch {epoch:2d} | train {running / len(train_loader):.4f} "
            f"| val {val_loss:.4f} | acc {val_acc:.4f}"
        )


if __name__ == "__main__":
    main()
