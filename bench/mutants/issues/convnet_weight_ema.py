"""Digit CNN with batch norm and an exponential moving average of the weights."""
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(24 * 4, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class ModelEMA:
    def __init__(self, model, decay=0.98):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.module.parameters(), model.parameters()):
            ema_p.lerp_(p, 1.0 - self.decay)
        for ema_b, b in zip(self.module.buffers(), model.buffers()):
            ema_b.copy_(b)


def load():
    bunch = load_digits()
    x = torch.tensor(bunch.images / 16.0, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(bunch.target)
    tr, va = train_test_split(range(len(y)), test_size=0.3, random_state=4, stratify=bunch.target)
    train = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=64, shuffle=True, drop_last=True)
    val = DataLoader(TensorDataset(x[va], y[va]), batch_size=256)
    return train, val


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    loss, correct, n = 0.0, 0, 0
    for x, y in loader:
        logits = net(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, correct / n


def main(epochs=10):
    torch.manual_seed(1)
    train_loader, val_loader = load()
    net = ConvNet()
    ema = ModelEMA(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)

    for epoch in range(epochs):
        net.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            ema.update(net)
        raw_loss, raw_acc = evaluate(net, val_loader)
        ema_loss, ema_acc = evaluate(ema.module, val_loader)
        print(
            f"epoch {epoch:2d}  raw {raw_loss:.4f} / {raw_acc:.4f}  "
            f"ema {ema_loss:.4f} / {ema_acc:.4f}"
        )


if __name__ == "__main__":
    main()
