"""Healthy: evaluation every few steps inside the epoch, early stopping that leaves the epoch half-way, best weights restored."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    """Stops when the validation loss has not improved for `patience` evaluations; keeps a copy of the best weights."""

    def __init__(self, patience=4, delta=1e-3):
        self.patience, self.delta = patience, delta
        self.best_loss, self.best_state, self.counter = None, None, 0

    def __call__(self, val_loss, model):
        if self.best_loss is None or val_loss < self.best_loss - self.delta:
            self.best_loss, self.counter = val_loss, 0
            self.best_state = {k: v.detach().clone() for k, v in model.state_dict().items()}
        else:
            self.counter += 1
        return self.counter >= self.patience


def validate(model, loader, criterion):
    was_training = model.training
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += criterion(model(x), y).item() * len(y)
    model.train(was_training)
    return total / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    w = torch.randn(12, 3)
    x = torch.randn(2400, 12)
    y = (x @ w + 1.2 * torch.randn(2400, 3)).argmax(1)
    train_loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=40, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=200)

    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    stopper = EarlyStopping()

    step, stop = 0, False
    for epoch in range(20):
        for xb, yb in train_loader:
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
            step += 1
            if step % 15 == 0:
                val_loss = validate(model, val_loader, criterion)
                stop = stopper(val_loss, model)
                if stop:
                    break
        if stop:
            break
    model.load_state_dict(stopper.best_state)
    print(f"stopped at step {step} in epoch {epoch} ({step % len(train_loader)} of {len(train_loader)} batches)")
    print(f"best val loss {stopper.best_loss:.4f}, restored {validate(model, val_loader, criterion):.4f}")


if __name__ == "__main__":
    main()
