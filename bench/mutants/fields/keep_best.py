"""Overparametrised net on noisy moons: keep the weights of the best epoch and use them in the end."""

import copy

import torch
from sklearn.datasets import make_moons
from torch import nn


class Trainer:
    """Trains, remembers the best weights, and restores them."""

    def __init__(self, model, lr=0.01, epochs=60):
        self.model = model
        self.epochs = epochs
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss_fn = nn.BCEWithLogitsLoss()
        self.best_loss = float("inf")
        self.best_weights = None
        self.best_epoch = -1

    def fit(self, x, y, x_val, y_val):
        for epoch in range(self.epochs):
            self.model.train()
            for idx in torch.randperm(len(x)).split(25):
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(x[idx]).squeeze(1), y[idx])
                loss.backward()
                self.optimizer.step()
            val_loss, val_acc = self.evaluate(x_val, y_val)
            if val_loss < self.best_loss:
                self.best_loss = val_loss
                self.best_epoch = epoch
                self.best_weights = copy.deepcopy(self.model.state_dict())
            if epoch % 10 == 0:
                print(f"epoch {epoch:3d} loss {loss.item():.4f} val loss {val_loss:.4f} val acc {val_acc:.4f}")
        self.model.load_state_dict(self.best_weights)
        print(f"restored epoch {self.best_epoch} with val loss {self.best_loss:.4f}")

    def evaluate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            logits = self.model(x).squeeze(1)
        return self.loss_fn(logits, y).item(), ((logits > 0) == y.bool()).float().mean().item()


def moons(n, seed):
    x, y = make_moons(n, noise=0.35, random_state=seed)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


if __name__ == "__main__":
    torch.manual_seed(55)
    net = nn.Sequential(nn.Linear(2, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))
    trainer = Trainer(net)
    trainer.fit(*moons(100, 1), *moons(200, 2))
    test_loss, test_acc = trainer.evaluate(*moons(1000, 3))
    print(f"test loss {test_loss:.4f} test accuracy {test_acc:.4f}")
