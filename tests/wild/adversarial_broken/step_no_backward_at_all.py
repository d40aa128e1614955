"""The backward call was lost in a refactoring; the loss is logged and the optimizer stepped."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(128, 10), torch.randn(128, 2))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(x), y)
            optimizer.step()  # error: step-without-backward
            total += loss.item()
        print(epoch, total / len(loader))


if __name__ == "__main__":
    main()
