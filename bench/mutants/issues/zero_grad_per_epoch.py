"""Explicit-feedback matrix factorisation with biases on synthetic ratings."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

N_USERS, N_ITEMS, RANK = 200, 120, 4


def make_ratings(seed=0):
    rng = np.random.default_rng(seed)
    users = rng.normal(0, 0.7, (N_USERS, RANK))
    items = rng.normal(0, 0.7, (N_ITEMS, RANK))
    bias_u, bias_i = rng.normal(0, 0.3, N_USERS), rng.normal(0, 0.4, N_ITEMS)
    seen = rng.random((N_USERS, N_ITEMS)) < 0.3
    u, i = np.nonzero(seen)
    rating = 3.5 + (users[u] * items[i]).sum(1) + bias_u[u] + bias_i[i] + rng.normal(0, 0.3, len(u))
    order = rng.permutation(len(u))
    cut = int(0.8 * len(order))
    as_set = lambda idx: TensorDataset(torch.tensor(u[idx]), torch.tensor(i[idx]),
                                       torch.tensor(np.clip(rating[idx], 1, 5), dtype=torch.float32))
    return as_set(order[:cut]), as_set(order[cut:])


class MatrixFactorization(nn.Module):
    def __init__(self, global_mean, dim=8):
        super().__init__()
        self.user_factors = nn.Embedding(N_USERS, dim)
        self.item_factors = nn.Embedding(N_ITEMS, dim)
        self.user_bias = nn.Embedding(N_USERS, 1)
        self.item_bias = nn.Embedding(N_ITEMS, 1)
        self.register_buffer("global_mean", global_mean)
        for table in (self.user_factors, self.item_factors):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, user, item):
        dot = (self.user_factors(user) * self.item_factors(item)).sum(1)
        return self.global_mean + dot + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)


def rmse(model, loader):
    model.eval()
    squared, n = 0.0, 0
    with torch.no_grad():
        for user, item, rating in loader:
            squared += ((model(user, item) - rating) ** 2).sum().item()
            n += len(rating)
    return (squared / n) ** 0.5


def train(model, train_loader, val_loader, epochs=10, lr=1e-2, weight_decay=1e-5):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
    loss_fn = nn.MSELoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for user, item, rating in train_loader:
            loss = loss_fn(model(user, item), rating)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rating)
        print(f"epoch {epoch + 1:2d}: train rmse {(total / len(train_loader.dataset)) ** 0.5:.4f} "
              f"val rmse {rmse(model, val_loader):.4f}")


def main():
    torch.manual_seed(0)
    train_set, val_set = make_ratings()
    train_loader = DataLoader(train_set, batch_size=128, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=512)
    model = MatrixFactorization(train_set.tensors[2].mean())
    print(f"baseline (global mean) val rmse {(val_set.tensors[2] - model.global_mean).pow(2).mean().sqrt():.4f}")
    train(model, train_loader, val_loader)


if __name__ == "__main__":
    main()
