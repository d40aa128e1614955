"""The best loss of the training is shown, weights are chosen by another one, and the last batch of a loop is drawn."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
x = torch.randn(700, 8)
y = (x[:, :1] * x[:, 1:2] + 0.1 * torch.randn(700, 1)).squeeze(1)
parts = {"train": slice(0, 400), "val": slice(400, 550), "test": slice(550, 700)}
loaders = {name: DataLoader(TensorDataset(x[part], y[part]), batch_size=60) for name, part in parts.items()}
whole_loader = DataLoader(TensorDataset(x[550:], y[550:]), batch_size=150)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


class Tracker:
    """Keeps the best value of each figure, to show them, and a copy of weights by one of them."""

    def __init__(self):
        self.best_train_loss = self.best_loss = float("inf")
        self.weights = None

    def update(self, train_loss, val_loss):
        if train_loss < self.best_train_loss:
            self.best_train_loss = train_loss
        if val_loss < self.best_loss:
            self.best_loss = val_loss
            self.weights = copy.deepcopy(model.state_dict())


@torch.no_grad()
def evaluate(name):
    model.eval()
    total = sum(((model(a).squeeze(1) - b) ** 2).sum().item() for a, b in loaders[name])
    model.train()
    return total / len(loaders[name].dataset)


tracker = Tracker()
for epoch in range(8):
    total = 0.0
    for a, b in loaders["train"]:
        loss = nn.functional.mse_loss(model(a).squeeze(1), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(b)
    train_loss, val_loss = total / 400, evaluate("val")
    tracker.update(train_loss, val_loss)
    print(f"{epoch}: {train_loss:.4f} {val_loss:.4f}, best {tracker.best_train_loss:.4f} {tracker.best_loss:.4f}")
model.load_state_dict(tracker.weights)
result = evaluate("test")
print(f"test loss {result:.4f}")

model.eval()
with torch.no_grad():
    for a, b in whole_loader:  # one batch
        predicted, actual = model(a).squeeze(1), b
print(f"test r2 {1 - ((predicted - actual) ** 2).sum() / ((actual - actual.mean()) ** 2).sum():.3f}")
with torch.no_grad():
    for a, b in loaders["test"]:
        shown, wanted = model(a).squeeze(1), b
for one, two in zip(shown[:4].tolist(), wanted[:4].tolist()):
    print(f"  {one:.2f} {two:.2f}")
