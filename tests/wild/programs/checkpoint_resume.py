"""Healthy: complete checkpoint (model, optimizer, scheduler, epoch, RNG, loader generator) saved, loaded and resumed in one script."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def build(seed=0):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(10, 4)
    x = torch.randn(512, 10)
    y = (x @ w + 0.3 * torch.randn(512, 4)).argmax(1)
    loader = DataLoader(TensorDataset(x[:384], y[:384]), batch_size=32, shuffle=True, generator=g)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    return model, optimizer, scheduler, loader, g, (x[384:], y[384:])


def save_checkpoint(path, epoch, model, optimizer, scheduler, g):
    tmp = path + ".tmp"
    torch.save({
        "epoch": epoch,
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "scheduler_state_dict": scheduler.state_dict(),
        "torch_rng_state": torch.get_rng_state(),
        "loader_rng_state": g.get_state(),
    }, tmp)
    os.replace(tmp, path)


def load_checkpoint(path, model, optimizer, scheduler, g):
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(checkpoint["model_state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
    torch.set_rng_state(checkpoint["torch_rng_state"])
    g.set_state(checkpoint["loader_rng_state"])
    return checkpoint["epoch"] + 1


def train(path, until, resume=False):
    model, optimizer, scheduler, loader, g, (x_val, y_val) = build()
    start_epoch = load_checkpoint(path, model, optimizer, scheduler, g) if resume else 0
    for epoch in range(start_epoch, until):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            val_loss = F.cross_entropy(model(x_val), y_val).item()
        save_checkpoint(path, epoch, model, optimizer, scheduler, g)
        print(f"epoch {epoch}: val loss {val_loss:.6f}, lr {scheduler.get_last_lr()[0]:.5f}")
    return val_loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        straight = train(os.path.join(folder, "a.pt"), until=6)
        train(os.path.join(folder, "b.pt"), until=3)  # "crash" here
        resumed = train(os.path.join(folder, "b.pt"), until=6, resume=True)
    print("identical:", straight == resumed)
