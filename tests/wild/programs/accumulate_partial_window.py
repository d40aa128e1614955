"""Healthy: gradient accumulation with the loss divided by the true window size; the partial last window is flushed."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--accum-steps", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make_data(n=720):
    centers = 2.0 * torch.randn(4, 10)
    y = torch.randint(0, 4, (n,))
    x = centers[y] + torch.randn(n, 10)
    return TensorDataset(x / 5**0.5, y)


def train_one_epoch(model, loader, optimizer, accum_steps):
    model.train()
    n_batches = len(loader)
    leftover = n_batches % accum_steps
    total = 0.0
    for i, (x, y) in enumerate(loader):
        # the last window of the epoch may be shorter than the others
        window = leftover if leftover and i >= n_batches - leftover else accum_steps
        loss = F.cross_entropy(model(x), y) / window
        loss.backward()
        total += loss.item() * window * len(y)
        if (i + 1) % accum_steps == 0 or i + 1 == n_batches:
            optimizer.step()
            optimizer.zero_grad()
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    train_set, val_set = random_split(make_data(), [600, 120])
    # 30 micro-batches per epoch: seven windows of four and one of two
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=60)

    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, train_loader, optimizer, args.accum_steps)
        acc = evaluate(model, val_loader)
        print(f"epoch {epoch}: train loss {loss:.4f}, val acc {acc:.3f}")


if __name__ == "__main__":
    main()
