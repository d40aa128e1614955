"""Pretrain on the digits 0 to 6, then train a new head for 7 to 9 on few examples."""

import torch
from sklearn.datasets import load_digits
from torch import nn


class DigitNet(nn.Module):
    """Convolutional backbone with a replaceable head."""

    def __init__(self, n_classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(192, 32), nn.ReLU()
        )
        self.head = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(model, optimizer, x, y, epochs, tag):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(30):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        if (epoch + 1) % (epochs // 2) == 0:
            print(f"{tag} epoch {epoch + 1} loss {total / len(x):.4f}")


@torch.no_grad()
def score(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def split(x, y, n_train):
    perm = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return x[perm[:n_train]], y[perm[:n_train]], x[perm[n_train:]], y[perm[n_train:]]


def main():
    torch.manual_seed(23)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    low = y < 7
    xa, ya, xa_val, ya_val = split(x[low], y[low], 900)
    xb, yb, xb_val, yb_val = split(x[~low], y[~low] - 7, 30)

    model = DigitNet(7)
    fit(model, torch.optim.Adam(model.parameters(), lr=3e-3), xa, ya, 10, "pretrain")
    print(f"accuracy on 0 to 6: {score(model, xa_val, ya_val):.4f}")

    old_head = model.head
    before = torch.cat([p.detach().flatten().clone() for p in model.backbone.parameters()])
    for p in model.backbone.parameters():
        p.requires_grad = False
    model.head = nn.Linear(32, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    fit(model, optimizer, xb, yb, 40, "finetune")
    after = torch.cat([p.detach().flatten() for p in model.backbone.parameters()])
    print(f"change of the backbone {(after - before).norm():.4f}")
    print(f"accuracy on 7 to 9: {score(model, xb_val, yb_val):.4f}")
    model.head = old_head
    print(f"accuracy on 0 to 6 with the old head: {score(model, xa_val, ya_val):.4f}")


if __name__ == "__main__":
    main()
