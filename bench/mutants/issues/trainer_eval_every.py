"""Tabular classifier with a Trainer that validates every few steps."""
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build_model():
    return nn.Sequential(
        nn.Linear(40, 128), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(128, 3),
    )


class Trainer:
    def __init__(self, model, train_set, val_set, lr=2e-3, batch_size=20, eval_every=5):
        self.model = model
        self.train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=512)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.eval_every = eval_every
        self.step = 0
        self.history = []

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total, seen = 0.0, 0
            for xb, yb in self.train_loader:
                loss = self.train_step(xb, yb)
                total += loss * len(yb)
                seen += len(yb)
                if self.step % self.eval_every == 0:
                    self.history.append((self.step, *self.validate()))
            step, val_loss, val_acc = self.history[-1]
            print(
                f"epoch {epoch:2d}  train loss {total / seen:.4f}  "
                f"val loss {val_loss:.4f}  val acc {val_acc:.4f}  (step {step})"
            )

    def train_step(self, xb, yb):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(xb), yb)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, hits, seen = 0.0, 0, 0
        for xb, yb in self.val_loader:
            logits = self.model(xb)
            total += self.criterion(logits, yb).item() * len(yb)
            hits += (logits.argmax(1) == yb).sum().item()
            seen += len(yb)
        self.model.train()
        return total / seen, hits / seen


def main():
    torch.manual_seed(0)
    X, y = make_classification(
        n_samples=1500, n_features=40, n_informative=12, n_classes=3,
        n_clusters_per_class=2, flip_y=0.15, random_state=0,
    )
    X_tr, X_va, y_tr, y_va = train_test_split(
        X, y, train_size=400, random_state=1, stratify=y
    )
    mu, sd = X_tr.mean(axis=0), X_tr.std(axis=0)
    train_set = TensorDataset(
        torch.tensor((X_tr - mu) / sd, dtype=torch.float32), torch.tensor(y_tr)
    )
    val_set = TensorDataset(
        torch.tensor((X_va - mu) / sd, dtype=torch.float32), torch.tensor(y_va)
    )
    trainer = Trainer(build_model(), train_set, val_set)
    trainer.fit(epochs=20)
    val_loss, val_acc = trainer.validate()
    print(f"final  val loss {val_loss:.4f}  val acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
