# Oil temperature of a transformer (ETTh1), twelve hours ahead, with a GRU. Arrays in numpy, batches by hand.
import os

import numpy as np
import torch
import torch.nn as nn

SEED = 99
HISTORY = 24
HORIZON = 12
BATCH = 64
EPOCHS = 8

torch.manual_seed(SEED)
rng = np.random.RandomState(SEED)

path = os.path.join(os.environ.get("TRUESTEP_DATA", "data"), "etth1", "ETTh1.csv")
table = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=range(1, 8), max_rows=3600)
hour = np.arange(len(table)) % 24
series = np.column_stack([table, np.sin(2 * np.pi * hour / 24), np.cos(2 * np.pi * hour / 24)])
OT = 6

train_end, val_end = 2400, 3000
mu = series[:train_end].mean(axis=0)
sigma = series[:train_end].std(axis=0)
scaled = (series - mu) / sigma


def make_windows(data, start, end):
    xs, ys = [], []
    for t in range(start + HISTORY, end - HORIZON + 1):
        xs.append(data[t - HISTORY : t])
        ys.append(data[t + HORIZON - 1, OT])
    return np.array(xs, dtype=np.float32), np.array(ys, dtype=np.float32)


x_train, y_train = make_windows(scaled, 0, train_end)
x_val, y_val = make_windows(scaled, train_end, val_end)
x_test, y_test = make_windows(scaled, val_end, len(scaled))


class Forecaster(nn.Module):
    def __init__(self, n_features, hidden=32):
        super().__init__()
        self.gru = nn.GRU(n_features, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.gru(x)
        last = states[:, -1]
        change = self.out(self.drop(last)).squeeze(-1)
        return x[:, -1, OT] + change


def batches(x, y, shuffle=False):
    order = rng.permutation(len(x)) if shuffle else np.arange(len(x))
    for i in range(0, len(x), BATCH):
        idx = order[i : i + BATCH]
        yield torch.from_numpy(x[idx]), torch.from_numpy(y[idx])


def mse(pred, target):
    return ((pred - target) ** 2).mean()


def predict(net, x, y):
    net.eval()
    preds = []
    with torch.no_grad():
        for xb, _ in batches(x, y):
            preds.append(net(xb).numpy())
    return np.concatenate(preds)


net = Forecaster(series.shape[1])
lr = 3e-3
opt = torch.optim.RMSprop(net.parameters(), lr=lr)
best_val, best_weights = np.inf, None

for epoch in range(EPOCHS):
    net.train()
    train_losses, sizes = [], []
    for xb, yb in batches(x_train, y_train, shuffle=True):
        pred = net(xb)
        loss = mse(pred, yb)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        train_losses.append(loss.item())
        sizes.append(len(xb))
    train_loss = np.average(train_losses, weights=sizes)

    val_pred = predict(net, x_val, y_val)
    val_loss = ((val_pred - y_val) ** 2).mean()
    if val_loss < best_val:
        best_val = val_loss
        best_weights = {name: value.clone() for name, value in net.state_dict().items()}
    print(f"epoch {epoch} lr {lr:.5f} train {train_loss:.4f} val {val_loss:.4f}")

    lr = lr * 0.7
    for group in opt.param_groups:
        group["lr"] = lr

net.load_state_dict(best_weights)
test_pred = predict(net, x_test, y_test) * sigma[OT] + mu[OT]
actual = y_test * sigma[OT] + mu[OT]
persistence = x_test[:, -1, OT] * sigma[OT] + mu[OT]
print(f"test mae {np.abs(test_pred - actual).mean():.3f} rmse {np.sqrt(((test_pred - actual) ** 2).mean()):.3f}")
print(f"persistence mae {np.abs(persistence - actual).mean():.3f}")
