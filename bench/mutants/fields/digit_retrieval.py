"""Learn an embedding of the digits with a triplet loss and measure how well it finds pictures of the same digit."""

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional


class Embedder(nn.Module):
    """Maps a picture to a point on the unit sphere."""

    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return functional.normalize(self.net(x), dim=1)


def triplets(y, n, rng):
    anchor = rng.integers(0, len(y), n)
    positive = np.array([rng.choice(np.flatnonzero((y == y[a]) & (np.arange(len(y)) != a))) for a in anchor])
    negative = np.array([rng.choice(np.flatnonzero(y != y[a])) for a in anchor])
    return anchor, positive, negative


@torch.no_grad()
def retrieval(model, x, y, k=3):
    """Share of the nearest neighbours, and of the k nearest, that show the digit of the query."""
    model.eval()
    z = model(x)
    sim = z @ z.t()
    sim.fill_diagonal_(-1.0)
    nearest = sim.topk(k, dim=1).indices
    same = y[nearest] == y[:, None]
    return same[:, 0].float().mean().item(), same.float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dim", type=int, default=4)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--margin", type=float, default=0.3)
    opts = parser.parse_args()
    torch.manual_seed(19)
    rng = np.random.default_rng(19)

    data, target = load_digits(return_X_y=True)
    noisy = data / 16.0 + rng.normal(0, 0.3, data.shape)
    x_train, x_test, y_train, y_test = train_test_split(noisy, target, test_size=0.4, random_state=19)
    x_train = torch.tensor(x_train, dtype=torch.float32)
    x_test = torch.tensor(x_test, dtype=torch.float32)

    model = Embedder(opts.dim)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.TripletMarginLoss(margin=opts.margin)
    for step in range(1, opts.steps + 1):
        model.train()
        a, p, n = triplets(y_train, 64, rng)
        loss = criterion(model(x_train[a]), model(x_train[p]), model(x_train[n]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            first, precision = retrieval(model, x_test, torch.from_numpy(y_test))
            print(f"step {step}: loss {loss.item():.4f} recall@1 {first:.4f} precision@3 {precision:.4f}")


if __name__ == "__main__":
    main()
