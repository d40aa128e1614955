"""Mixup and averaged weights on small subsets of Fashion-MNIST."""

from __future__ import annotations

import copy
import gzip
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, TensorDataset


@dataclass
class Config:
    root: Path = Path(os.environ.get("TRUESTEP_DATA", "data")) / "fashion-mnist"
    n_train: int = 1600
    n_val: int = 400
    n_test: int = 800
    epochs: int = 8
    batch_size: int = 50
    lr: float = 3e-3
    weight_decay: float = 0.05
    mixup_alpha: float = 0.2
    ema_decay: float = 0.95
    patience: int = 3
    seed: int = 11


def load(cfg: Config, split: str, size: int, shift: int = 0) -> TensorDataset:
    with gzip.open(cfg.root / f"{split}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(16 + 784 * (shift + size)), np.uint8, offset=16).reshape(-1, 1, 28, 28)[shift:]
    with gzip.open(cfg.root / f"{split}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + shift + size), np.uint8, offset=8)[shift:]
    x = F.avg_pool2d(torch.from_numpy(images.astype(np.float32) / 255), 2)
    return TensorDataset((x - 0.286) / 0.32, torch.from_numpy(labels.astype(np.int64)))


class ConvNet(nn.Module):
    def __init__(self, width: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(2)
        )
        self.head = nn.Linear(8 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.stem(x)).flatten(1))


class Callback:
    def on_step_end(self, exp: Experiment) -> None: ...
    def on_validation_start(self, exp: Experiment) -> None: ...
    def on_validation_end(self, exp: Experiment) -> None: ...


class EMA(Callback):
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}
        self.backup: dict[str, Tensor] = {}

    @torch.no_grad()
    def on_step_end(self, exp: Experiment) -> None:
        for name, value in exp.model.state_dict().items():
            if value.dtype.is_floating_point:
                self.shadow[name].mul_(self.decay).add_(value, alpha=1 - self.decay)
            else:
                self.shadow[name].copy_(value)

    def on_validation_start(self, exp: Experiment) -> None:
        self.backup = copy.deepcopy(exp.model.state_dict())
        exp.model.load_state_dict(self.shadow)

    def on_validation_end(self, exp: Experiment) -> None:
        exp.model.load_state_dict(self.backup)


@dataclass
class EarlyStopping(Callback):
    patience: int
    ema: EMA
    best: float = float("inf")
    bad: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)

    def on_validation_end(self, exp: Experiment) -> None:
        value = exp.history[-1]["val_loss"]
        if value < self.best:
            self.best, self.bad = value, 0
            self.weights = copy.deepcopy(self.ema.shadow)
        else:
            self.bad += 1
            exp.should_stop = self.bad >= self.patience


class Experiment:
    def __init__(self, cfg: Config) -> None:
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.rng = np.random.default_rng(cfg.seed)
        pool = load(cfg, "train", cfg.n_train + cfg.n_val)
        order = torch.randperm(len(pool)).tolist()
        self.train_loader = DataLoader(Subset(pool, order[: cfg.n_train]), cfg.batch_size, shuffle=True)
        self.val_loader = DataLoader(Subset(pool, order[cfg.n_train :]), 150)
        self.test_loader = DataLoader(load(cfg, "t10k", cfg.n_test), 300)
        self.model = ConvNet()
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        no_decay = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": cfg.weight_decay}, {"params": no_decay, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=cfg.lr)
        self.ema = EMA(self.model, cfg.ema_decay)
        self.stopper = EarlyStopping(cfg.patience, self.ema)
        self.callbacks: list[Callback] = [self.ema, self.stopper]
        self.history: list[dict[str, float]] = []
        self.should_stop = False

    def mixup_loss(self, x: Tensor, y: Tensor) -> Tensor:
        lam = float(self.rng.beta(self.cfg.mixup_alpha, self.cfg.mixup_alpha))
        other = torch.randperm(len(x))
        logits = self.model(lam * x + (1 - lam) * x[other])
        return lam * F.cross_entropy(logits, y) + (1 - lam) * F.cross_entropy(logits, y[other])

    def run_epoch(self) -> float:
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = self.mixup_loss(x, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
            for callback in self.callbacks:
                callback.on_step_end(self)
        return total / self.cfg.n_train

    @torch.no_grad()
    def evaluate(self, loader: DataLoader) -> tuple[float, float]:
        self.model.eval()
        loss = correct = count = 0
        for x, y in loader:
            logits = self.model(x)
            loss += F.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(1) == y).sum().item()
            count += len(y)
        return loss / count, correct / count

    def run(self) -> None:
        for epoch in range(self.cfg.epochs):
            train_loss = self.run_epoch()
            for callback in self.callbacks:
                callback.on_validation_start(self)
            val_loss, val_acc = self.evaluate(self.val_loader)
            self.history.append({"train_loss": train_loss, "val_loss": val_loss, "val_acc": val_acc})
            for callback in self.callbacks:
                callback.on_validation_end(self)
            print(f"{epoch}: train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.4f}")
            if self.should_stop:
                break
        self.model.load_state_dict(self.stopper.weights)
        loss, acc = self.evaluate(self.test_loader)
        print(f"test {loss:.4f} acc {acc:.4f}")


if __name__ == "__main__":
    Experiment(Config()).run()
