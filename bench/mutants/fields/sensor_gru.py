"""Which of three machines made this recording? A GRU over (batch, time, channel) windows."""

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

SEED = 13
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)


def record(machine, steps=24):
    t = np.arange(steps)
    f = [0.25, 0.33, 0.42][machine]
    p = rng.uniform(0, 2 * np.pi)
    clean = np.stack([np.sin(2 * np.pi * f * t + p), np.cos(2 * np.pi * f * t + p), np.zeros(steps)], axis=1)
    return clean + rng.normal(0, 0.25, clean.shape)


labels = rng.integers(0, 3, 900)
signals = np.stack([record(m) for m in labels]).astype(np.float32)
x, y = torch.from_numpy(signals), torch.from_numpy(labels)
train_dl = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=30, shuffle=True)
valid_dl = DataLoader(TensorDataset(x[600:], y[600:]), batch_size=100)


class MachineGRU(nn.Module):
    """GRU, last step, linear."""

    def __init__(self, n_features=3, hidden_size=20, n_classes=3):
        super().__init__()
        self.rnn = nn.GRU(n_features, hidden_size, num_layers=1, batch_first=True)
        self.linear = nn.Linear(hidden_size, n_classes)

    def forward(self, inp):
        out, _ = self.rnn(inp)
        return self.linear(out[:, -1, :])


def fit(model, epochs):
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    history = []
    for epoch in range(epochs):
        model.train()
        for xb, yb in train_dl:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
        model.eval()
        val_loss, val_right = 0.0, 0
        with torch.no_grad():
            for xb, yb in valid_dl:
                scores = model(xb)
                val_loss += criterion(scores, yb).item() * len(yb)
                val_right += (scores.argmax(1) == yb).sum().item()
        history.append(val_loss / 300)
        print(f"epoch {epoch}: val_loss {history[-1]:.4f} val_acc {val_right / 300:.4f}")
    return history


history = fit(MachineGRU(), 10)
print("best val loss", round(min(history), 4))
