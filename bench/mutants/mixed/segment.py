# %% [markdown]
# # Discs and squares
# Segment discs (1) and squares (2) on a noisy background (0). Pixels on the outline of an
# object are ambiguous, they get the void label 255 and count nowhere.

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
rng = np.random.default_rng(5)
CLASSES, VOID = 3, 255

# %% scenes are drawn at 64x64
yy, xx = np.mgrid[0:64, 0:64]


def scene():
    img = rng.normal(0.4, 0.25, (64, 64)) + 0.3 * np.sin(xx / rng.uniform(6, 14))
    lab = np.zeros((64, 64), np.int64)
    for _ in range(rng.integers(1, 3)):
        cy, cx, r = rng.integers(12, 52), rng.integers(12, 52), rng.integers(9, 17)
        if rng.random() < 0.5:
            inside, cls, light = (yy - cy) ** 2 + (xx - cx) ** 2 <= r * r, 1, 1.4
        else:
            inside, cls, light = (abs(yy - cy) <= 0.8 * r) & (abs(xx - cx) <= 0.8 * r), 2, 1.0
        img[inside] = rng.normal(light, 0.25, inside.sum()) + 0.02 * (xx[inside] - cx)   # lit from the right
        lab[inside] = cls
    return img.astype(np.float32), lab


def shrink(images, labels):
    """64x64 -> 32x32, then mark the outlines as void."""
    images = F.interpolate(images[:, None], size=(32, 32), mode="bilinear", align_corners=False)
    labels = F.interpolate(labels[:, None].float(), size=(32, 32), mode="nearest")[:, 0].long()
    hi = F.max_pool2d(labels[:, None].float(), 3, 1, 1)[:, 0]
    lo = -F.max_pool2d(-labels[:, None].float(), 3, 1, 1)[:, 0]
    edge = (hi != lo) & (labels > 0)
    return images, labels.masked_fill(edge, VOID)


def make(n):
    scenes = [scene() for _ in range(n)]
    return shrink(torch.tensor(np.stack([s[0] for s in scenes])), torch.tensor(np.stack([s[1] for s in scenes])))


X_tr, y_tr = make(216)
X_va, y_va = make(60)
X_te, y_te = make(100)
mu, sd = X_tr.mean(), X_tr.std()
X_tr, X_va, X_te = (X_tr - mu) / sd, (X_va - mu) / sd, (X_te - mu) / sd
print("class shares", [(y_tr == c).float().mean().item().__round__(4) for c in (0, 1, 2, VOID)])

# %%
train_dl = DataLoader(TensorDataset(X_tr, y_tr), batch_size=12, shuffle=True)
val_dl = DataLoader(TensorDataset(X_va, y_va), batch_size=50)
test_dl = DataLoader(TensorDataset(X_te, y_te), batch_size=50)


# %% model
def double_conv(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
        nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.down1 = double_conv(1, c)
        self.down2 = double_conv(c, 2 * c)
        self.bottom = double_conv(2 * c, 4 * c)
        self.up2 = nn.ConvTranspose2d(4 * c, 2 * c, 2, stride=2)
        self.dec2 = double_conv(4 * c, 2 * c)
        self.up1 = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.dec1 = double_conv(2 * c, c)
        self.out = nn.Conv2d(c, CLASSES, 1)

    def forward(self, x):
        s1 = self.down1(x)
        s2 = self.down2(F.max_pool2d(s1, 2))
        b = self.bottom(F.max_pool2d(s2, 2))
        u2 = self.up2(b)
        u2 = self.dec2(torch.cat([u2, s2], dim=1))
        u1 = self.up1(u2)
        u1 = self.dec1(torch.cat([u1, s1], dim=1))
        return self.out(u1)


# %% loss
def dice_loss(logits, y, eps=1.0):
    valid = (y != VOID).unsqueeze(1).float()
    onehot = F.one_hot(y.masked_fill(y == VOID, 0), CLASSES).permute(0, 3, 1, 2).float()
    prob = torch.softmax(logits, dim=1)
    prob, onehot = prob * valid, onehot * valid
    inter = (prob * onehot).sum(dim=(0, 2, 3))
    total = prob.sum(dim=(0, 2, 3)) + onehot.sum(dim=(0, 2, 3))
    return 1 - ((2 * inter + eps) / (total + eps)).mean()


def loss_fn(logits, y):
    ce = F.cross_entropy(logits, y, ignore_index=VOID)
    return ce + dice_loss(logits, y)


# %% metrics
def scores(net, dl):
    net.eval()
    cm = torch.zeros(CLASSES, CLASSES)
    with torch.no_grad():
        for x, y in dl:
            pred = net(x).argmax(dim=1)
            ok = y != VOID
            cm += torch.bincount(y[ok] * CLASSES + pred[ok], minlength=CLASSES ** 2).view(CLASSES, CLASSES)
    inter = cm.diag()
    union = cm.sum(0) + cm.sum(1) - inter
    return (inter / union), (inter.sum() / cm.sum()).item()


# %% training
net = UNet()
EPOCHS = 5
opt = torch.optim.Adam(net.parameters(), lr=2e-2)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS * len(train_dl))
for epoch in range(EPOCHS):
    net.train()
    seen = 0.0
    for x, y in train_dl:
        if torch.rand(1) < 0.5:
            x, y = x.flip(-2), y.flip(-2)
        opt.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        opt.step()
        sched.step()
        seen += loss.item()
    iou, acc = scores(net, val_dl)
    print(f"{epoch}  loss {seen / len(train_dl):.4f}  val mIoU {iou.mean():.4f}  acc {acc:.4f}")

# %% test
iou, acc = scores(net, test_dl)
print("test IoU", [round(v, 4) for v in iou.tolist()], f"mean {iou.mean():.4f} acc {acc:.4f}")
