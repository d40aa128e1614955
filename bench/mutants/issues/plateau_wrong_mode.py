"""GRU classifier for synthetic sensor sequences with a plateau schedule on validation accuracy."""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass
class TrainConfig:
    n_sequences: int = 1000
    seq_len: int = 24
    hidden: int = 32
    batch_size: int = 50
    epochs: int = 12
    lr: float = 4e-3
    plateau_factor: float = 0.2
    plateau_patience: int = 1
    seed: int = 17


def sensor_sequences(cfg):
    t = torch.arange(cfg.seq_len) / cfg.seq_len
    label = torch.randint(0, 4, (cfg.n_sequences,))
    freq = 1.5 + 0.5 * label.float()
    phase = 2 * math.pi * torch.rand(cfg.n_sequences)
    wave = torch.sin(2 * math.pi * freq[:, None] * t[None, :] + phase[:, None])
    noisy = wave + 0.3 * torch.randn(cfg.n_sequences, cfg.seq_len)
    return TensorDataset(noisy.unsqueeze(-1), label)


class GRUClassifier(nn.Module):
    def __init__(self, hidden, n_classes=4):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, n_classes)

    def forward(self, x):
        _, h = self.gru(x)
        return self.fc(h[-1])


def accuracy(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def main(cfg):
    torch.manual_seed(cfg.seed)
    data = sensor_sequences(cfg)
    n_val = cfg.n_sequences // 4
    train_set, val_set = random_split(data, [cfg.n_sequences - n_val, n_val])
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=250)

    model = GRUClassifier(cfg.hidden)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = ReduceLROnPlateau(optimizer, mode="max", factor=cfg.plateau_factor,
                                  patience=cfg.plateau_patience)

    for epoch in range(1, cfg.epochs + 1):
        model.train()
        total = 0.0
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(y)
        val_acc = accuracy(model, val_loader)
        scheduler.step(val_acc)
        print(f"epoch {epoch:2d} loss {total / len(train_set):.4f} val acc {val_acc:.4f} "
              f"lr {optimizer.param_groups[0]['lr']:.2e}")


if __name__ == "__main__":
    main(TrainConfig())
