"""Three quantiles of a skewed demand with the pinball loss."""

import numpy as np
import torch
from torch import nn

QUANTILES = (0.1, 0.5, 0.9)


def make_demand(n, rng):
    price = rng.uniform(0, 2, size=n)
    day = rng.integers(0, 7, size=n)
    mean = 3 + 2 * np.sin(day / 7 * 2 * np.pi) - 1.2 * price
    demand = mean + rng.exponential(0.4 + 0.8 * price)
    x = np.column_stack([price - 1, np.sin(day / 7 * 2 * np.pi), np.cos(day / 7 * 2 * np.pi)])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(demand, dtype=torch.float32)


def pinball(pred, y):
    total = 0.0
    for k, q in enumerate(QUANTILES):
        err = y - pred[:, k]
        total = total + torch.max(q * err, (q - 1) * err).mean()
    return total


def main():
    rng = np.random.default_rng(21)
    torch.manual_seed(21)
    x_train, y_train = make_demand(2000, rng)
    x_val, y_val = make_demand(1000, rng)
    model = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, len(QUANTILES)))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(40):
        model.train()
        order = torch.randperm(len(x_train))
        epoch_loss = 0.0
        for batch in order.split(100):
            loss = pinball(model(x_train[batch]), y_train[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item() * len(batch)
        if epoch % 8 == 7:
            model.eval()
            with torch.no_grad():
                val = pinball(model(x_val), y_val).item()
            print(f"epoch {epoch + 1}: train {epoch_loss / len(x_train):.4f} val {val:.4f}")
    model.eval()
    with torch.no_grad():
        pred = model(x_val)
    for k, q in enumerate(QUANTILES):
        print(f"share below the {q:.1f} quantile: {(y_val <= pred[:, k]).float().mean():.3f}")


main()
