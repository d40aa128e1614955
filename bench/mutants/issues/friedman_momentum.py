# Regression with a small network; training wrapped in functions that the notebook cells call.
import numpy as np
import torch
from torch import nn


def friedman(n, rng):
    x = rng.uniform(0, 1, size=(n, 8))
    y = (10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
         + 10 * x[:, 3] + 5 * x[:, 4] + rng.normal(0, 0.5, n))
    return x, y


def prepare(seed=0):
    rng = np.random.default_rng(seed)
    x_train, y_train = friedman(800, rng)
    x_val, y_val = friedman(300, rng)
    mean, std = x_train.mean(0), x_train.std(0)
    y_mean, y_std = y_train.mean(), y_train.std()
    to_t = lambda a: torch.tensor(a, dtype=torch.float32)
    return (to_t((x_train - mean) / std), to_t((y_train - y_mean) / y_std),
            to_t((x_val - mean) / std), to_t((y_val - y_mean) / y_std), y_std)


class Regressor(nn.Module):
    def __init__(self, d_in, width=40):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                 nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def fit_epoch(model, optimizer, x, y, batch_size=100):
    model.train()
    criterion = nn.MSELoss()
    total = 0.0
    for idx in torch.randperm(len(x)).split(batch_size):
        optimizer.zero_grad()
        loss = criterion(model(x[idx]), y[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    return total / len(x)


def score(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def run(n_epochs=120, lr=0.01, momentum=0.95, seed=0):
    torch.manual_seed(seed)
    x_train, y_train, x_val, y_val, y_std = prepare(seed)
    model = Regressor(x_train.shape[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    for epoch in range(1, n_epochs + 1):
        train_loss = fit_epoch(model, optimizer, x_train, y_train)
        if epoch % 20 == 0:
            print(f'epoch {epoch:3d}  train {train_loss:.4f}  val {score(model, x_val, y_val):.4f}')
    rmse = score(model, x_val, y_val) ** 0.5 * y_std
    print(f'validation RMSE in original units: {rmse:.4f} (noise level 0.5)')


run()
