"""A very small vision transformer on the digits, shifted about on a canvas of 10x10 and cut into patches."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
rng = np.random.default_rng(6)
PATCH, SIDE = 5, 10

digits = load_digits()
canvas = np.zeros((len(digits.images), SIDE, SIDE), dtype=np.float32)
for i, img in enumerate(digits.images):
    r, c = rng.integers(0, SIDE - 8 + 1, 2)
    canvas[i, r : r + 8, c : c + 8] = img / 16.0
x_tr, x_te, y_tr, y_te = train_test_split(canvas, digits.target, test_size=0.3, stratify=digits.target, random_state=6)


def patchify(x):
    """(B, H, W) -> (B, number of patches, patch * patch)."""
    b, h, w = x.shape
    x = x.view(b, h // PATCH, PATCH, w // PATCH, PATCH)
    return x.permute(0, 1, 3, 2, 4).reshape(b, -1, PATCH * PATCH)


class TinyViT(nn.Module):
    """Patch embedding, class token, one encoder layer."""

    def __init__(self, dim=48):
        super().__init__()
        n = (SIDE // PATCH) ** 2
        self.proj = nn.Sequential(nn.Linear(PATCH * PATCH, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n + 1, dim) * 0.02)
        self.layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, norm_first=True, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 10))

    def forward(self, x):
        tokens = self.proj(patchify(x))
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], dim=1) + self.pos
        return self.head(self.layer(tokens)[:, 0])


train_dl = DataLoader(TensorDataset(torch.from_numpy(x_tr), torch.from_numpy(y_tr)), batch_size=40, shuffle=True)
x_te, y_te = torch.from_numpy(x_te), torch.from_numpy(y_te)
model = TinyViT()
epochs = 5
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=epochs * len(train_dl))
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

for epoch in range(epochs):
    model.train()
    running = 0.0
    for xb, yb in train_dl:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sched.step()
        running += loss.item()
    if epoch % 2 == 0:
        model.eval()
        with torch.no_grad():
            acc = (model(x_te).argmax(1) == y_te).float().mean().item()
        print(f"epoch {epoch:2d}: train loss {running / len(train_dl):.4f}, test accuracy {acc:.4f}")
