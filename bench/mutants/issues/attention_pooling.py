import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_clips(n, frames, rng):
    """Clips of frame features; the class is told by the frames that carry the cue."""
    x = rng.normal(0, 1, (n, frames, 8)).astype(np.float32)
    y = rng.integers(0, 4, n)
    for i in range(n):
        hot = rng.choice(frames, 2, replace=False)
        x[i, hot, 0] += 3.5
        x[i, hot, 1:5] *= 0.5
        x[i, hot, 1 + y[i]] += 2.0
    return torch.from_numpy(x), torch.from_numpy(y)


class AttentionPool(nn.Module):
    def __init__(self, dim, hidden=16):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, h):
        weights = torch.softmax(self.score(h), dim=1)
        return (weights * h).sum(dim=1)


class ClipClassifier(nn.Module):
    def __init__(self, dim=24, classes=4):
        super().__init__()
        self.frame = nn.Sequential(nn.Linear(8, dim), nn.Tanh())
        self.pool = AttentionPool(dim)
        self.classify = nn.Linear(dim, classes)

    def forward(self, x):
        return self.classify(self.pool(self.frame(x)))


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def train_one_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss, hits = 0.0, 0
        for x, y in self.val_loader:
            out = self.model(x)
            loss += self.criterion(out, y).item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
        n = len(self.val_loader.dataset)
        return loss / n, hits / n

    def run(self, epochs):
        for epoch in range(1, epochs + 1):
            train_loss = self.train_one_epoch()
            val_loss, val_acc = self.validate()
            if epoch % 4 == 0:
                print(f"epoch {epoch:2d} | train {train_loss:.4f} | val {val_loss:.4f} | acc {val_acc:.4f}")


if __name__ == "__main__":
    torch.manual_seed(2)
    rng = np.random.default_rng(2)
    train_set = TensorDataset(*make_clips(2000, 40, rng))
    val_set = TensorDataset(*make_clips(800, 40, rng))
    trainer = Trainer(ClipClassifier(),
                      DataLoader(train_set, batch_size=64, shuffle=True),
                      DataLoader(val_set, batch_size=200), lr=3e-3)
    trainer.run(epochs=24)
