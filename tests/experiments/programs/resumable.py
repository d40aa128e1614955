"""A training that saves everything and goes on from it, less the pieces named by --forget.

resumable.py [--forget PIECE] [--every N] [--plain-write] ...
"""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--forget", default="")
parser.add_argument("--every", type=int, default=0, help="save after so many steps, not after epochs")
parser.add_argument("--plain-write", action="store_true")
parser.add_argument("--never", action="store_true")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--fresh-start", action="store_true")
options = parser.parse_args()
EPOCHS, BATCH = 5, 8


class Shuffled(Sampler):
    """Another order in each epoch, a function of the epoch alone; begins at a given position."""

    def __init__(self, size):
        self.size, self.epoch, self.start = size, 0, 0

    def __iter__(self):
        order = torch.randperm(self.size, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        yield from order[self.start * BATCH :]

    def __len__(self):
        return self.size - self.start * BATCH


def main():
    if options.seed >= 0:
        torch.manual_seed(options.seed)
    made = torch.Generator().manual_seed(7)
    x = torch.randn(64, 6, generator=made)
    data = TensorDataset(x, x[:, :1] * 2 + 0.1 * torch.randn(64, 1, generator=made))
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.7)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=6)
    sampler = Shuffled(len(data))
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler)
    epoch, start = 0, 0

    def state():
        weights = model.state_dict()
        if options.forget == "buffers":
            weights = {name: tensor for name, tensor in weights.items() if "running" not in name and "num" not in name}
        return {
            "model": weights,
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "random": torch.get_rng_state(),
            "epoch": epoch,
            "start": start,
        }

    def save():
        if options.plain_write:
            torch.save(state(), "checkpoint.pt")
        else:
            torch.save(state(), "checkpoint.tmp")
            os.replace("checkpoint.tmp", "checkpoint.pt")

    if os.path.exists("checkpoint.pt") and not options.fresh_start:
        saved = torch.load("checkpoint.pt")
        if options.forget != "weights":
            model.load_state_dict(saved["model"], strict=options.forget != "buffers")
        if options.forget != "optimizer":
            optimizer.load_state_dict(saved["optimizer"])
        if options.forget != "scheduler":
            scheduler.load_state_dict(saved["scheduler"])
        if options.forget != "scaler":
            scaler.load_state_dict(saved["scaler"])
        if options.forget != "epoch":
            epoch = saved["epoch"]
        if options.forget != "position":
            start = saved["start"]
        if options.forget != "random":
            torch.set_rng_state(saved["random"])
    while epoch < EPOCHS:
        sampler.epoch, sampler.start = epoch, start
        state_of_epoch = torch.get_rng_state()
        batches = iter(loader)
        if start:  # the draws of the loader at its begin were made before
            torch.set_rng_state(state_of_epoch)
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            start += 1
            if options.every and start % options.every == 0:
                save()
        epoch, start = epoch + 1, 0
        if not options.never and not options.every:
            save()
    print(f"loss {float(loss):.4f}")


main()
