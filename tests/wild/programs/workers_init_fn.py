"""Healthy: DataLoader with two persistent workers, worker_init_fn and generator as in the reproducibility notes."""
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2 ** 32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


class AugmentedSignals(Dataset):
    def __init__(self, n, seed, train):
        rng = np.random.RandomState(seed)
        self.label = rng.randint(0, 3, n)
        t = np.linspace(0, 1, 40)
        kinds = np.stack([np.sin(2 * np.pi * 3 * t), np.sign(np.sin(2 * np.pi * 3 * t)), 2 * (3 * t % 1) - 1])
        self.signal = (kinds[self.label] + 0.5 * rng.randn(n, 40)).astype(np.float32)
        self.train = train

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        x = self.signal[i]
        if self.train:
            if random.random() < 0.5:
                x = np.roll(x, random.randint(-2, 2))
            x = x + 0.1 * np.random.randn(40).astype(np.float32)
        return torch.as_tensor(x)[None], int(self.label[i])


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    g = torch.Generator()
    g.manual_seed(0)
    train_loader = DataLoader(AugmentedSignals(480, 1, True), batch_size=32, shuffle=True, num_workers=2,
                              worker_init_fn=seed_worker, generator=g, persistent_workers=True)
    val_loader = DataLoader(AugmentedSignals(150, 2, False), batch_size=50)
    net = nn.Sequential(nn.Conv1d(1, 8, 7), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 16, 5), nn.ReLU(),
                        nn.Flatten(), nn.Dropout(0.1), nn.LazyLinear(3))
    net(next(iter(val_loader))[0])  # materialise the lazy layer
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(4):
        net.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        net.eval()
        with torch.no_grad():
            correct = sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"epoch {epoch} train loss {running / 480:.4f} val acc {correct / 150:.4f}")


if __name__ == "__main__":
    main()
