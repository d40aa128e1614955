#!/usr/bin/env python3
"""Train a regressor for house prices; continues from the last checkpoint of the working folder."""

import argparse
import csv
import logging
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("housing")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")) / "housing" / "housing.csv")
    parser.add_argument("--work-dir", type=Path, default=None)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--stop-after", type=int, default=6, help="epochs of the first job; the second one continues")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-2)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--clip", type=float, default=0.5)
    parser.add_argument("--patience", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def load_data(args: argparse.Namespace) -> dict[str, TensorDataset]:
    with open(args.data, newline="") as file:
        rows = list(csv.DictReader(file))
    rng = np.random.default_rng(args.seed)
    rows = [rows[i] for i in rng.permutation(len(rows))[: args.rows]]
    names = [name for name in rows[0] if name not in ("median_house_value", "ocean_proximity")]
    numbers = np.array([[float(row[name] or "nan") for name in names] for row in rows])
    places = sorted({row["ocean_proximity"] for row in rows})
    one_hot = np.array([[row["ocean_proximity"] == place for place in places] for row in rows], dtype=float)
    target = np.log(np.array([float(row["median_house_value"]) for row in rows]))

    n_train, n_val = int(0.7 * len(rows)), int(0.15 * len(rows))
    median = np.nanmedian(numbers[:n_train], axis=0)
    numbers = np.where(np.isnan(numbers), median, numbers)
    mean, std = numbers[:n_train].mean(axis=0), numbers[:n_train].std(axis=0)
    features = np.concatenate([(numbers - mean) / std, one_hot], axis=1)
    center = target[:n_train].mean()

    x = torch.tensor(features, dtype=torch.float32)
    y = torch.tensor(target - center, dtype=torch.float32)
    parts = {"train": slice(0, n_train), "val": slice(n_train, n_train + n_val), "test": slice(n_train + n_val, None)}
    return {name: TensorDataset(x[part], y[part]) for name, part in parts.items()} | {"center": center}


class Trainer:
    def __init__(self, args: argparse.Namespace, data: dict, work_dir: Path) -> None:
        self.args = args
        self.center = data["center"]
        self.train_loader = DataLoader(data["train"], batch_size=args.batch_size, shuffle=True)
        self.val_loader = DataLoader(data["val"], batch_size=256)
        self.test_loader = DataLoader(data["test"], batch_size=256)
        width = data["train"].tensors[0].shape[1]
        self.model = nn.Sequential(
            nn.Linear(width, 96), nn.ReLU(), nn.Dropout(0.05), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=args.momentum)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=args.epochs)
        self.loss_fn = nn.MSELoss()
        self.start_epoch = 0
        self.best = float("inf")
        self.bad_epochs = 0
        self.last_path = work_dir / "last.pt"
        self.best_path = work_dir / "best.pt"

    def save(self, path: Path, epoch: int) -> None:
        torch.save(
            {
                "epoch": epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "best": self.best,
                "bad_epochs": self.bad_epochs,
                "rng": torch.get_rng_state(),
            },
            path,
        )

    def resume(self) -> None:
        if not self.last_path.exists():
            return
        state = torch.load(self.last_path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.start_epoch = state["epoch"] + 1
        self.best = state["best"]
        self.bad_epochs = state["bad_epochs"]
        torch.set_rng_state(state["rng"])
        log.info("continue at epoch %d", self.start_epoch)

    def train_epoch(self) -> float:
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss_fn(self.model(x).squeeze(-1), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
            self.optimizer.step()
            total += loss.item() * len(x)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def evaluate(self, loader: DataLoader) -> dict[str, float]:
        self.model.eval()
        predicted = torch.cat([self.model(x).squeeze(-1) for x, _ in loader])
        actual = torch.cat([y for _, y in loader])
        dollars = (predicted + self.center).exp() - (actual + self.center).exp()
        return {
            "loss": self.loss_fn(predicted, actual).item(),
            "mae": dollars.abs().mean().item(),
            "r2": 1 - ((predicted - actual) ** 2).sum().item() / ((actual - actual.mean()) ** 2).sum().item(),
        }

    def fit(self, until: int) -> None:
        for epoch in range(self.start_epoch, until):
            lr = self.optimizer.param_groups[0]["lr"]
            train_loss = self.train_epoch()
            val = self.evaluate(self.val_loader)
            self.scheduler.step()
            if val["loss"] < self.best:
                self.best = val["loss"]
                self.bad_epochs = 0
                self.save(self.best_path, epoch)
            else:
                self.bad_epochs += 1
            self.save(self.last_path, epoch)
            print(f"epoch {epoch:2d} lr {lr:.5f} train {train_loss:.4f} val {val['loss']:.4f} mae {val['mae']:.0f}")
            if self.bad_epochs >= self.args.patience:
                log.info("no improvement for %d epochs", self.bad_epochs)
                break

    def test(self) -> None:
        self.model.load_state_dict(torch.load(self.best_path)["model"])
        result = self.evaluate(self.test_loader)
        print(f"test loss {result['loss']:.4f} mae {result['mae']:.0f} r2 {result['r2']:.4f}")


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    args = parse_args()
    data = load_data(args)
    with tempfile.TemporaryDirectory() as folder:
        work_dir = args.work_dir or Path(folder)
        for until in (args.stop_after, args.epochs):
            torch.manual_seed(args.seed)
            trainer = Trainer(args, data, work_dir)
            trainer.resume()
            trainer.fit(until)
        trainer.test()


if __name__ == "__main__":
    main()
