"""Activity recognition from short accelerometer-like recordings."""
import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 4


def simulate(n, steps, generator):
    """Class sets the direction, the speed and the radius of the motion over the recording."""
    labels = torch.randint(0, CLASSES, (n,), generator=generator)
    time = torch.linspace(0, 1, steps)
    speed = torch.tensor([3.0, 5.0, 3.0, 5.0])[labels]
    sign = torch.tensor([1.0, 1.0, -1.0, -1.0])[labels]
    phase = torch.rand(n, generator=generator) * 2 * math.pi
    angle = phase[:, None] + sign[:, None] * speed[:, None] * math.pi * time
    radius = torch.tensor([1.0, 1.8, 1.0, 1.8])[labels]
    x = radius[:, None, None] * torch.stack([angle.cos(), angle.sin()], dim=-1)
    x = x + 0.3 * torch.randn(x.shape, generator=generator)
    return x, labels


class ActivityLSTM(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(input_size=2, hidden_size=hidden, batch_first=True)
        self.fc = nn.Linear(hidden, CLASSES)

    def forward(self, x):
        # x: (batch, steps, channels)
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    train_set = TensorDataset(*simulate(1200, args.steps, generator))
    val_set = TensorDataset(*simulate(400, args.steps, generator))
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=args.batch_size)

    model = ActivityLSTM()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item() * len(y)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}: loss {running / len(train_set):.4f} "
                  f"val acc {evaluate(model, val_loader):.4f}")


if __name__ == "__main__":
    main()
