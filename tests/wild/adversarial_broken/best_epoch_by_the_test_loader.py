"""A class with three loaders; the best epoch is kept in a file, and the loader of the validation is never read."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Trainer:
    def __init__(self, folder):
        torch.manual_seed(0)
        x = torch.randn(700, 8)
        y = (x[:, 0] + torch.randn(700) > 0).long()
        parts = random_split(TensorDataset(x, y), [500, 100, 100])
        self.train_loader = DataLoader(parts[0], batch_size=25, shuffle=True)
        self.val_loader = DataLoader(parts[1], batch_size=50)
        self.test_loader = DataLoader(parts[2], batch_size=50)
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.path, self.best = Path(folder, "best.pt"), -1.0

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        right = sum((self.net(x).argmax(1) == y).sum().item() for x, y in self.test_loader)
        self.net.train()
        return right / 100

    def fit(self):
        for _ in range(6):
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.net(x), y).backward()
                self.optimizer.step()
            score = self.evaluate()
            if score > self.best:  # error: chosen-without-validation
                self.best = score
                torch.save(self.net.state_dict(), self.path)
        self.net.load_state_dict(torch.load(self.path, weights_only=True))
        print(f"test {self.evaluate():.2f}")


with tempfile.TemporaryDirectory() as folder:
    Trainer(folder).fit()
