"""Healthy: OneCycleLR stepped after every batch, total steps exactly epochs times batches."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def conv_block(in_channels, out_channels, pool=False):
    layers = [nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1),
              nn.BatchNorm2d(out_channels),
              nn.ReLU(inplace=True)]
    if pool:
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


class ResNet9ish(nn.Module):
    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.conv1 = conv_block(in_channels, 8)
        self.conv2 = conv_block(8, 16, pool=True)
        self.res1 = nn.Sequential(conv_block(16, 16), conv_block(16, 16))
        self.classifier = nn.Sequential(nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, num_classes))

    def forward(self, xb):
        out = self.conv2(self.conv1(xb))
        out = self.res1(out) + out
        return self.classifier(out)


@torch.no_grad()
def evaluate(model, val_loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader) / len(val_loader.dataset)


def get_lr(optimizer):
    for param_group in optimizer.param_groups:
        return param_group["lr"]


def fit_one_cycle(epochs, max_lr, model, train_loader, val_loader, grad_clip=None):
    history = []
    optimizer = torch.optim.Adam(model.parameters(), max_lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr, epochs=epochs, steps_per_epoch=len(train_loader))
    for epoch in range(epochs):
        model.train()
        lrs = []
        for xb, yb in train_loader:
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            if grad_clip:
                nn.utils.clip_grad_value_(model.parameters(), grad_clip)
            optimizer.step()
            optimizer.zero_grad()
            lrs.append(get_lr(optimizer))
            sched.step()
        history.append({"epoch": epoch, "lr": round(lrs[-1], 6), "val_acc": evaluate(model, val_loader)})
    return history


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    y = torch.randint(0, 3, (480,))
    x = 0.4 * torch.randn(480, 3, 8, 8)
    x[torch.arange(480), y] += torch.rand(480, 8, 8)
    x = (x - x[:384].mean((0, 2, 3), keepdim=True)) / x[:384].std((0, 2, 3), keepdim=True)
    train_dl = DataLoader(TensorDataset(x[:384], y[:384]), batch_size=32, shuffle=True)
    val_dl = DataLoader(TensorDataset(x[384:], y[384:]), batch_size=48)
    for row in fit_one_cycle(5, 0.01, ResNet9ish(3, 3), train_dl, val_dl, grad_clip=0.1):
        print(row)
