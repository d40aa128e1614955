"""Quantisation-aware training of a small network with 4-bit weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

BITS = 4


def fake_quantize(weight, bits=BITS):
    levels = 2 ** (bits - 1) - 1
    scale = weight.detach().abs().max() / levels
    quantized = torch.round(weight / scale).clamp(-levels, levels) * scale
    return weight + (quantized - weight).detach()


class QuantLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, fake_quantize(self.weight), self.bias)


class QuantMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            QuantLinear(64, 32), nn.BatchNorm1d(32), nn.ReLU(),
            QuantLinear(32, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        return self.out(self.layers(x))


def get_data(seed):
    X, y = load_digits(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)

    def to_set(features, labels):
        return TensorDataset(torch.tensor(features / 16.0, dtype=torch.float32), torch.tensor(labels))

    return to_set(X_train, y_train), to_set(X_val, y_val)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(18)
    train_set, val_set = get_data(18)
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=256)
    model = QuantMLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 21):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        if epoch % 4 == 0:
            print(f"epoch {epoch:2d}  train loss {total / len(train_set):.4f}  "
                  f"val acc {evaluate(model, val_loader):.4f}")


if __name__ == "__main__":
    main()
