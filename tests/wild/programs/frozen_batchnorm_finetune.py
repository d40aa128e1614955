"""Fine-tuning with frozen BatchNorm: train() overridden so that normalisation stays in eval mode, its affine parameters frozen too."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    def __init__(self, freeze_bn=False):
        super().__init__()
        self.freeze_bn = freeze_bn
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.fc = nn.Linear(96, 10)

    def freeze_normalisation(self):
        self.freeze_bn = True
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.weight.requires_grad = False
                m.bias.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        if mode and self.freeze_bn:
            for m in self.modules():
                if isinstance(m, nn.BatchNorm2d):
                    m.eval()
        return self

    def forward(self, x):
        return self.fc(self.features(x))


def fit(model, loader, epochs, lr):
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


def test(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


torch.manual_seed(0)
bunch = load_digits()
x, y = torch.tensor(bunch.images, dtype=torch.float32)[:, None] / 16, torch.tensor(bunch.target)
source = DataLoader(TensorDataset(x[:900], y[:900]), batch_size=60, shuffle=True)
rotated = torch.rot90(x, 1, dims=(2, 3))
target = DataLoader(TensorDataset(rotated[900:1400], y[900:1400]), batch_size=8, shuffle=True)
held_out = DataLoader(TensorDataset(rotated[1400:], y[1400:]), batch_size=100)

model = Backbone()
print(f"source loss {fit(model, source, 4, 0.05):.3f}, rotated before fine-tuning {test(model, held_out):.3f}")
model.freeze_normalisation()
print(f"target loss {fit(model, target, 3, 0.01):.3f}, rotated after fine-tuning {test(model, held_out):.3f}")
