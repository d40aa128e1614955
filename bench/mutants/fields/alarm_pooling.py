"""Find the one important event in a log: attention pooling over the events of a window."""

import numpy as np
import torch
from torch import nn


class AttentionPool(nn.Module):
    """Weighted average over time, the weights learnt from the content."""

    def __init__(self, dim):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 1))

    def forward(self, h):
        weights = torch.softmax(self.score(h), dim=1)
        return (weights * h).sum(dim=1)


class AlarmModel(nn.Module):
    """Event embedding, pooling, classifier."""

    def __init__(self, n_in=6, dim=24, n_classes=4):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(n_in, dim), nn.ReLU())
        self.pool = AttentionPool(dim)
        self.classifier = nn.Linear(dim, n_classes)

    def forward(self, x):
        return self.classifier(self.pool(self.embed(x)))


def make_logs(n, seed, length=30):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (n, length, 6))
    x[:, :, 0] = rng.normal(0, 0.3, (n, length))
    y = rng.integers(0, 4, n)
    where = rng.integers(0, length, n)
    x[np.arange(n), where, 0] = 2.5
    x[np.arange(n), where, 1:5] = rng.normal(0, 0.3, (n, 4))
    x[np.arange(n), where, 1 + y] += 1.8
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def evaluate(model, x, y):
    model.eval()
    with torch.inference_mode():
        logits = model(x)
    return nn.functional.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(2)
    x_train, y_train = make_logs(1000, seed=2)
    x_val, y_val = make_logs(300, seed=3)
    model = AlarmModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
    for epoch in range(1, 10):
        model.train()
        for idx in torch.randperm(len(x_train)).split(50):
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(model(x_train[idx]), y_train[idx])
            loss.backward()
            optimizer.step()
        if epoch % 2 == 0:
            train_loss, train_acc = evaluate(model, x_train, y_train)
            val_loss, val_acc = evaluate(model, x_val, y_val)
            print(f"epoch {epoch:2d} train {train_loss:.3f}/{train_acc:.3f} val {val_loss:.3f}/{val_acc:.3f}")


if __name__ == "__main__":
    main()
