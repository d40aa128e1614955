"""Label each moment of a walk (rest, walk, run, jump) with a convolution over time followed by a GRU."""

import numpy as np
import torch
import torch.nn as nn

N_CLASSES, STEPS = 4, 32


def simulate(n, seed):
    rng = np.random.default_rng(seed)
    x = np.zeros((n, STEPS, 3), dtype=np.float32)
    y = np.zeros((n, STEPS), dtype=np.int64)
    for i in range(n):
        t = 0
        while t < STEPS:
            k, dur = rng.integers(0, N_CLASSES), rng.integers(5, 12)
            end = min(STEPS, t + dur)
            s = np.arange(end - t)
            amp, freq = [(0.1, 0.1), (0.8, 0.15), (1.3, 0.3), (2.5, 0.1)][k]
            for c in range(3):
                x[i, t:end, c] = amp * np.sin(2 * np.pi * freq * s + c)
            y[i, t:end] = k
            t = end
    x += rng.normal(0, 0.2, x.shape).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


class ActivityNet(nn.Module):
    """Returns logits of shape (batch, time, class)."""

    def __init__(self, hidden=24):
        super().__init__()
        self.conv = nn.Conv1d(3, 16, 5, padding=2)
        self.gru = nn.GRU(16, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, N_CLASSES)

    def forward(self, x):
        h = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.gru(h)
        return self.out(h)


class Runner:
    """Training and validation of the activity net."""

    def __init__(self):
        torch.manual_seed(31)
        self.net = ActivityNet()
        self.loss = nn.CrossEntropyLoss()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=6e-3)

    def compute_loss(self, x, y):
        logits = self.net(x)
        return self.loss(logits.permute(0, 2, 1), y), logits

    def train(self, x, y):
        self.net.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(25):
            loss, _ = self.compute_loss(x[idx], y[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(idx)
        return total / len(x)

    def validate(self, x, y):
        self.net.eval()
        with torch.no_grad():
            loss, logits = self.compute_loss(x, y)
        return loss.item(), (logits.argmax(-1) == y).float().mean().item()


runner = Runner()
x_train, y_train = simulate(250, 0)
x_val, y_val = simulate(100, 1)
for epoch in range(7):
    train_loss = runner.train(x_train, y_train)
    val_loss, val_acc = runner.validate(x_val, y_val)
    print(f"Epoch {epoch + 1}/7 - loss: {train_loss:.4f} - val_loss: {val_loss:.4f} - val_accuracy: {val_acc:.4f}")
