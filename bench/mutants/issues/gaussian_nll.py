"""Regression with predicted uncertainty on noise that grows with one input."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


def make_data(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 3))
    noise = 0.15 + 0.6 / (1 + np.exp(-2 * x[:, 0]))
    y = np.sin(1.5 * x[:, 1]) + 0.5 * x[:, 2] + noise * rng.normal(size=n)
    return x, y


class GaussianRegressor(nn.Module):
    def __init__(self, n_features, hidden=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU(),
                                  nn.Linear(hidden, hidden), nn.ReLU())
        self.mean = nn.Linear(hidden, 1)
        self.std = nn.Sequential(nn.Linear(hidden, 1), nn.Softplus())

    def forward(self, x):
        h = self.body(x)
        return self.mean(h).squeeze(1), self.std(h).squeeze(1) + 1e-3


def train(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        mean, std = model(x)
        loss = criterion(mean, y, std.square())
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    mean, std = model(x)
    rmse = (mean - y).square().mean().sqrt().item()
    inside = ((y - mean).abs() <= 1.645 * std).float().mean().item()
    nll = -torch.distributions.Normal(mean, std).log_prob(y).mean().item()
    return rmse, inside, nll


def main():
    torch.manual_seed(5)
    x, y = make_data(2500, seed=5)
    x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.3, random_state=5)
    scaler = StandardScaler().fit(x_train)
    to_tensor = lambda a: torch.tensor(a, dtype=torch.float32)
    train_set = TensorDataset(to_tensor(scaler.transform(x_train)), to_tensor(y_train))
    x_val, y_val = to_tensor(scaler.transform(x_val)), to_tensor(y_val)
    loader = DataLoader(train_set, batch_size=50, shuffle=True)

    model = GaussianRegressor(3)
    criterion = nn.GaussianNLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 31):
        train_loss = train(model, loader, optimizer, criterion)
        if epoch % 6 == 0:
            rmse, inside, nll = evaluate(model, x_val, y_val)
            print(f"epoch {epoch:2d}  train loss {train_loss:.4f}  val RMSE {rmse:.4f}  "
                  f"90% interval covers {inside:.3f}  val NLL {nll:.4f}")


if __name__ == "__main__":
    main()
