"""Healthy: ReduceLROnPlateau fed with the validation loss once per epoch, best weights deep-copied and restored."""
import copy

import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset


class HousePrices(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        area = rng.uniform(40, 200, n)
        rooms = rng.integers(1, 7, n)
        age = rng.uniform(0, 80, n)
        price = 3.0 * area + 20 * rooms - 0.02 * age ** 2 + rng.normal(0, 12, n)
        features = np.stack([area, rooms, age], 1)
        self.x = ((features - [120, 3.5, 40]) / [46, 1.7, 23]).astype(np.float32)
        self.y = ((price - 387) / 150).astype(np.float32)[:, None]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def run_epoch(model, loader, criterion, optimizer=None):
    is_train = optimizer is not None
    model.train(is_train)
    running = 0.0
    with torch.set_grad_enabled(is_train):
        for x, y in loader:
            if is_train:
                optimizer.zero_grad()
            loss = criterion(model(x), y)
            if is_train:
                loss.backward()
                optimizer.step()
            running += loss.item() * x.size(0)
    return running / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loaders = {"train": DataLoader(HousePrices(512, 0), batch_size=32, shuffle=True),
               "val": DataLoader(HousePrices(160, 1), batch_size=80)}
    test_loader = DataLoader(HousePrices(160, 2), batch_size=80)
    model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Dropout(0.05), nn.Linear(32, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    scheduler = ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=1)

    best, best_wts = float("inf"), copy.deepcopy(model.state_dict())
    for epoch in range(10):
        train_loss = run_epoch(model, loaders["train"], criterion, optimizer)
        val_loss = run_epoch(model, loaders["val"], criterion)
        scheduler.step(val_loss)
        if val_loss < best:
            best, best_wts = val_loss, copy.deepcopy(model.state_dict())
        print(f"{epoch:2d} train {train_loss:.4f} val {val_loss:.4f} lr {optimizer.param_groups[0]['lr']:.4f}")
    model.load_state_dict(best_wts)
    print(f"best val {best:.4f}, test {run_epoch(model, test_loader, criterion):.4f}")


if __name__ == "__main__":
    main()
