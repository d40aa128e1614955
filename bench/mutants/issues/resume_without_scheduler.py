"""Training in two jobs of a time-limited queue: the second job resumes from the checkpoint of the first."""
import os
import tempfile

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset

TOTAL_EPOCHS = 40
WARMUP_EPOCHS = 5
PREEMPT_AFTER = 25


class Trainer:
    def __init__(self, train_loader, val_loader, checkpoint_path):
        torch.manual_seed(0)
        self.train_loader, self.val_loader = train_loader, val_loader
        self.checkpoint_path = checkpoint_path
        self.model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        warmup = LinearLR(self.optimizer, start_factor=0.1, total_iters=WARMUP_EPOCHS)
        cosine = CosineAnnealingLR(self.optimizer, T_max=TOTAL_EPOCHS - WARMUP_EPOCHS)
        self.scheduler = SequentialLR(self.optimizer, [warmup, cosine], milestones=[WARMUP_EPOCHS])
        self.epoch = 0

    def save_model(self):
        torch.save({
            "epoch": self.epoch,
            "model_state_dict": self.model.state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),
            "scheduler_state_dict": self.scheduler.state_dict(),
            "rng_state": torch.get_rng_state(),
        }, self.checkpoint_path)

    def load_checkpoint(self):
        ckpt = torch.load(self.checkpoint_path, weights_only=True)
        self.epoch = ckpt["epoch"]
        self.model.load_state_dict(ckpt["model_state_dict"])
        self.optimizer.load_state_dict(ckpt["optimizer_state_dict"])
        self.scheduler.load_state_dict(ckpt["scheduler_state_dict"])
        torch.set_rng_state(ckpt["rng_state"])
        print(f"resumed at epoch {self.epoch}")

    def train_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x + 0.3 * torch.randn_like(x)), y)
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss, correct = 0.0, 0
        for x, y in self.val_loader:
            out = self.model(x)
            loss += self.criterion(out, y).item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
        n = len(self.val_loader.dataset)
        return loss / n, correct / n

    def fit(self, until):
        while self.epoch < until:
            self.train_epoch()
            self.scheduler.step()
            self.epoch += 1
            if self.epoch % 5 == 0:
                loss, acc = self.validate()
                lr = self.optimizer.param_groups[0]["lr"]
                print(f"epoch {self.epoch:2d} lr {lr:.5f} val loss {loss:.4f} acc {acc:.4f}")
        self.save_model()


def get_data():
    X, y = load_wine(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X_train)

    def ds(a, b):
        return TensorDataset(torch.tensor(scaler.transform(a), dtype=torch.float32), torch.tensor(b))

    return DataLoader(ds(X_train, y_train), batch_size=8, shuffle=True), DataLoader(ds(X_val, y_val), batch_size=64)


if __name__ == "__main__":
    train_loader, val_loader = get_data()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "last.pt")
        Trainer(train_loader, val_loader, path).fit(until=PREEMPT_AFTER)

        second_job = Trainer(train_loader, val_loader, path)
        second_job.load_checkpoint()
        second_job.fit(until=TOTAL_EPOCHS)
        final_loss, final_acc = second_job.validate()
    print(f"final lr {second_job.optimizer.param_groups[0]['lr']:.5f} val loss {final_loss:.4f} acc {final_acc:.4f}")
