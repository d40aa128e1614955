"""Training in two sessions: the second one picks up from the checkpoint of the first."""
import math
import os
import tempfile

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TOTAL_EPOCHS = 20
WARMUP_EPOCHS = 2
FIRST_SESSION_ENDS = 12
PEAK_LR = 0.5


def lr_factor(epoch):
    if epoch < WARMUP_EPOCHS:
        return (epoch + 1) / WARMUP_EPOCHS
    t = (epoch - WARMUP_EPOCHS) / (TOTAL_EPOCHS - WARMUP_EPOCHS)
    return 0.5 * (1.0 + math.cos(math.pi * t))


def get_data():
    X, y = load_digits(return_X_y=True)
    X_tr, X_va, y_tr, y_va = train_test_split(X / 16.0, y, train_size=900, random_state=2, stratify=y)
    make = lambda a, b: TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(b))
    return make(X_tr, y_tr), make(X_va, y_va)


class Session:
    def __init__(self, ckpt_path):
        self.ckpt_path = ckpt_path
        train_set, val_set = get_data()
        self.train_loader = DataLoader(train_set, batch_size=30, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=512)
        self.model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=PEAK_LR, momentum=0.9, weight_decay=1e-4
        )
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lr_factor)
        self.loss_fn = nn.CrossEntropyLoss()
        self.start_epoch = 0
        if os.path.exists(ckpt_path):
            self.resume()

    def save(self, epoch):
        torch.save(
            {
                "epoch": epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "rng": torch.get_rng_state(),
            },
            self.ckpt_path,
        )

    def resume(self):
        ckpt = torch.load(self.ckpt_path)
        self.model.load_state_dict(ckpt["model"])
        self.optimizer.load_state_dict(ckpt["optimizer"])
        self.scheduler.load_state_dict(ckpt["scheduler"])
        torch.set_rng_state(ckpt["rng"])
        self.start_epoch = ckpt["epoch"] + 1
        print(f"resumed at epoch {self.start_epoch}")

    def run(self, stop_epoch):
        for epoch in range(self.start_epoch, stop_epoch):
            self.model.train()
            for xb, yb in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(xb), yb)
                loss.backward()
                self.optimizer.step()
            self.scheduler.step()
            val_loss, val_acc = self.validate()
            self.save(epoch)
            print(f"epoch {epoch:2d}  val loss {val_loss:.4f}  val acc {val_acc:.4f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss, hits, n = 0.0, 0, 0
        for xb, yb in self.val_loader:
            out = self.model(xb)
            loss += self.loss_fn(out, yb).item() * len(yb)
            hits += (out.argmax(1) == yb).sum().item()
            n += len(yb)
        return loss / n, hits / n


if __name__ == "__main__":
    torch.manual_seed(8)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        Session(path).run(stop_epoch=FIRST_SESSION_ENDS)
        Session(path).run(stop_epoch=TOTAL_EPOCHS)
