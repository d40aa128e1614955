"""Find faulty parts (about one in twelve): precision, recall and F1 on the validation set."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(91)
torch.manual_seed(91)


def parts(n):
    x = rng.normal(size=(n, 8))
    score = x[:, 0] * x[:, 1] + 0.8 * x[:, 2] + 0.3 * rng.normal(size=n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor((score > 1.75).astype(np.float32))


class Counter:
    """Counts hits and misses over batches."""

    def __init__(self):
        self.tp = self.fp = self.fn = 0

    def update(self, pred, truth):
        self.tp += int((pred & truth).sum())
        self.fp += int((pred & ~truth).sum())
        self.fn += int((~pred & truth).sum())

    def scores(self):
        precision = self.tp / max(self.tp + self.fp, 1)
        recall = self.tp / max(self.tp + self.fn, 1)
        return precision, recall, 2 * precision * recall / max(precision + recall, 1e-8)


def validate(model, loader):
    model.eval()
    counter = Counter()
    with torch.no_grad():
        for x, y in loader:
            pred = torch.sigmoid(model(x)[:, 0]) > 0.5
            counter.update(pred, y.bool())
    return counter.scores()


train_x, train_y = parts(1600)
val_x, val_y = parts(600)
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(val_x, val_y), batch_size=16)
model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))
loss_fn = nn.BCEWithLogitsLoss(pos_weight=(train_y == 0).sum() / train_y.sum())
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(1, 11):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x)[:, 0], y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    precision, recall, f1 = validate(model, val_loader)
    print(
        f"epoch {epoch:2d} loss {total / len(train_loader):.4f} | precision {precision:.4f} recall "
        f"{recall:.4f} F1 {f1:.4f}"
    )
