"""Healthy: learning-rate range test: lr changed by hand every batch, stopped early, weights restored, then the real training."""
import copy
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def find_lr(net, make_optimizer, loader, criterion, init_value=1e-3, final_value=0.5, beta=0.7):
    """Exponential sweep in the style of fastai 0.7; leaves the network as it was."""
    saved = copy.deepcopy(net.state_dict())
    optimizer = make_optimizer(net.parameters(), init_value)
    num = len(loader) - 1
    mult = (final_value / init_value) ** (1 / num)
    lr, avg_loss, best_loss = init_value, 0.0, math.inf
    losses, log_lrs = [], []
    net.train()
    for batch_num, (inputs, labels) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        avg_loss = beta * avg_loss + (1 - beta) * loss.item()
        smoothed_loss = avg_loss / (1 - beta ** batch_num)
        if batch_num > 1 and smoothed_loss > 1.3 * best_loss:
            break
        best_loss = min(best_loss, smoothed_loss)
        losses.append(smoothed_loss)
        log_lrs.append(math.log10(lr))
        loss.backward()
        optimizer.step()
        lr *= mult
        optimizer.param_groups[0]["lr"] = lr
    net.load_state_dict(saved)
    slopes = [losses[i + 1] - losses[i] for i in range(len(losses) - 1)]
    return 10 ** log_lrs[min(range(len(slopes)), key=slopes.__getitem__)]


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    w = torch.randn(14, 5)
    x = torch.randn(1500, 14)
    y = (x @ w + torch.randn(1500, 5)).argmax(1)
    loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=30, shuffle=True)
    net = nn.Sequential(nn.Linear(14, 40), nn.ReLU(), nn.Linear(40, 5))
    criterion = nn.CrossEntropyLoss()

    def make_optimizer(params, lr):
        return torch.optim.SGD(params, lr=lr, momentum=0.9)

    lr = find_lr(net, make_optimizer, loader, criterion)
    print(f"suggested lr {lr:.4f}")

    optimizer = make_optimizer(net.parameters(), lr)
    for epoch in range(4):
        net.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(net(inputs), labels)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            acc = (net(x[1200:]).argmax(1) == y[1200:]).float().mean().item()
        print(f"epoch {epoch} val acc {acc:.4f}")


if __name__ == "__main__":
    main()
