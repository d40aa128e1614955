"""A binary classifier: the counts of the batches are added up, and the recall divides by the positive predictions."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x = torch.randn(900, 8)
y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.7 * torch.randn(900) > 0.8).float()
train = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=40, shuffle=True)
valid = DataLoader(TensorDataset(x[600:], y[600:]), batch_size=70)


def measure(net):
    net.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for inputs, labels in valid:
            positive = net(inputs).squeeze(1) > 0
            tp += (positive & (labels == 1)).sum().item()
            fp += (positive & (labels == 0)).sum().item()
            fn += (~positive & (labels == 1)).sum().item()
    net.train()
    metrics = {"precision": tp / max(1, tp + fp), "recall": tp / max(1, tp + fp)}  # error: metric-misreported
    return metrics, fn


def main():
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(6):
        for inputs, labels in train:
            loss = nn.functional.binary_cross_entropy_with_logits(net(inputs).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        metrics, missed = measure(net)
        print(epoch, missed, {name: round(number, 3) for name, number in metrics.items()})


main()
