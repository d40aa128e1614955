"""Healthy: a plain loop with Lightning Fabric: setup, accumulation with no_backward_sync, clipping, evaluation, saving."""
import os
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(8 * 4 * 4, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(self.dropout(x.flatten(1)))


def main():
    fabric = L.Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    fabric.seed_everything(11, verbose=False)
    fabric.launch()
    label = torch.arange(480) % 3
    images = 0.5 * torch.randn(480, 1, 8, 8)
    for row in range(3):
        images[label == row, :, 2 * row + 1] += 1.5
    train = DataLoader(TensorDataset(images[:384], label[:384]), batch_size=16, shuffle=True)
    valid = DataLoader(TensorDataset(images[384:], label[384:]), batch_size=32)
    train, valid = fabric.setup_dataloaders(train, valid)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer = fabric.setup(model, optimizer)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    accumulate = 2
    for _ in range(5):
        model.train()
        for number, (x, y) in enumerate(train):
            accumulating = (number + 1) % accumulate != 0
            with fabric.no_backward_sync(model, enabled=accumulating):
                loss = F.cross_entropy(model(x), y) / accumulate
                fabric.backward(loss)
            if not accumulating:
                fabric.clip_gradients(model, optimizer, max_norm=1.0)
                optimizer.step()
                optimizer.zero_grad()
        schedule.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in valid:
                correct += int((model(x).argmax(1) == y).sum())
    with tempfile.TemporaryDirectory() as folder:
        state = {"model": model, "optimizer": optimizer, "epoch": 5}
        fabric.save(os.path.join(folder, "state.ckpt"), state)
        fabric.load(os.path.join(folder, "state.ckpt"), state)
    fabric.print(f"accuracy {correct / 96:.2f}")


if __name__ == "__main__":
    main()
