"""One-step-ahead forecasting of a noisy AR process with rare shocks, LSTM and SGD."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def ar_process(n, seed):
    rng = np.random.default_rng(seed)
    x = np.zeros(n)
    for t in range(2, n):
        shock = rng.normal(0, 12) if rng.random() < 0.01 else 0.0
        x[t] = 1.2 * x[t - 1] - 0.4 * x[t - 2] + rng.normal(0, 0.3) + shock
    return x.astype(np.float32)


def to_windows(series, length):
    view = np.lib.stride_tricks.sliding_window_view(series, length + 1)
    data = torch.tensor(view.copy())
    return TensorDataset(data[:, :-1].unsqueeze(-1), data[:, -1:])


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.linear(out[:, -1])


def make_train_step(model, loss_fn, optimizer, max_norm):
    def step(x, y):
        model.train()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        return loss.item()
    return step


def make_val_step(model, loss_fn):
    @torch.no_grad()
    def step(x, y):
        model.eval()
        return loss_fn(model(x), y).item()
    return step


def main():
    torch.manual_seed(6)
    series = ar_process(1600, seed=6)
    n_train = 1200
    mean, std = series[:n_train].mean(), series[:n_train].std()
    series = (series - mean) / std
    train_loader = DataLoader(to_windows(series[:n_train], 12), batch_size=16, shuffle=True)
    val_loader = DataLoader(to_windows(series[n_train:], 12), batch_size=128)

    model = Forecaster()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    train_step = make_train_step(model, nn.MSELoss(), optimizer, max_norm=0.25)
    val_step = make_val_step(model, nn.MSELoss())

    for epoch in range(1, 13):
        train_loss = sum(train_step(x, y) * len(x) for x, y in train_loader) / len(train_loader.dataset)
        val_loss = sum(val_step(x, y) * len(x) for x, y in val_loader) / len(val_loader.dataset)
        print(f"epoch {epoch:2d}: train mse {train_loss:.4f}, val mse {val_loss:.4f}")


if __name__ == "__main__":
    main()
