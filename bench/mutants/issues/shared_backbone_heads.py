"""
Adapt a digit classifier to a new scanner: the backbone stays frozen and shared,
each scanner gets its own linear head.
"""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)


class Backbone(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
        )

    def forward(self, x):
        return self.net(x)


class MultiHeadNet(nn.Module):
    def __init__(self, scanners, width=64, n_classes=10):
        super().__init__()
        self.backbone = Backbone(width)
        self.heads = nn.ModuleDict({s: nn.Linear(width, n_classes) for s in scanners})

    def forward(self, x, scanner):
        return self.heads[scanner](self.backbone(x))

    def freeze_backbone(self):
        for p in self.backbone.parameters():
            p.requires_grad_(False)


def scan_old(images):
    return images


def scan_new(images):
    """The new device inverts the page and has lower contrast."""
    return 0.9 - 0.6 * images + 0.05 * torch.randn_like(images)


def loaders(scan):
    X, y = load_digits(return_X_y=True)
    X_tr, X_va, y_tr, y_va = train_test_split(
        X / 16.0, y, test_size=0.25, random_state=0, stratify=y
    )
    train = TensorDataset(scan(torch.tensor(X_tr, dtype=torch.float32)), torch.tensor(y_tr))
    val = TensorDataset(scan(torch.tensor(X_va, dtype=torch.float32)), torch.tensor(y_va))
    return DataLoader(train, batch_size=64, shuffle=True, drop_last=True), DataLoader(val, batch_size=256)


@torch.no_grad()
def accuracy(model, loader, scanner):
    model.eval()
    hits = sum((model(x, scanner).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def fit(model, loader, scanner, params, epochs, lr, frozen_backbone):
    optimizer = torch.optim.Adam(params, lr=lr)
    for epoch in range(epochs):
        model.train()
        if frozen_backbone:
            model.backbone.eval()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x, scanner), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if epoch % 5 == 4:
            print(f"  {scanner}: epoch {epoch + 1}, train loss {total / len(loader):.4f}")


old_train, old_val = loaders(scan_old)
new_train, new_val = loaders(scan_new)
model = MultiHeadNet(["old", "new"])

fit(
    model, old_train, "old",
    [*model.backbone.parameters(), *model.heads["old"].parameters()],
    epochs=10, lr=2e-3, frozen_backbone=False,
)
print(f"old scanner, before adaptation: val acc {accuracy(model, old_val, 'old'):.4f}")

model.freeze_backbone()
fit(
    model, new_train, "new", model.heads["new"].parameters(),
    epochs=15, lr=1e-2, frozen_backbone=True,
)
print(f"new scanner, after adaptation:  val acc {accuracy(model, new_val, 'new'):.4f}")
print(f"old scanner, after adaptation:  val acc {accuracy(model, old_val, 'old'):.4f}")
