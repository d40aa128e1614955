"""Semantic segmentation of synthetic scenes (background, discs, bars, rare crosses)."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = ["background", "disc", "bar", "cross"]
SIZE = 24


def make_scene(rng):
    mask = np.zeros((SIZE, SIZE), dtype=np.int64)
    yy, xx = np.mgrid[:SIZE, :SIZE]
    cy, cx = rng.integers(5, SIZE - 5, 2)
    mask[(yy - cy) ** 2 + (xx - cx) ** 2 < rng.integers(9, 20)] = 1
    if rng.random() < 0.6:
        top, left = rng.integers(0, SIZE - 10, 2)
        mask[top:top + 3, left:left + 10] = 2
    if rng.random() < 0.10:
        r, c = rng.integers(4, SIZE - 4, 2)
        mask[r - 3:r + 4, c] = 3
        mask[r, c - 3:c + 4] = 3
    intensity = np.array([0.0, 0.8, 0.9, 1.0])[mask]
    image = intensity + rng.normal(0.0, 0.35, mask.shape)
    return image.astype(np.float32), mask


def make_set(n, seed):
    rng = np.random.default_rng(seed)
    images, masks = zip(*(make_scene(rng) for _ in range(n)))
    return TensorDataset(
        torch.from_numpy(np.stack(images)).unsqueeze(1), torch.from_numpy(np.stack(masks))
    )


def build_net():
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(),
        nn.Conv2d(12, 12, 3, padding=2, dilation=2), nn.ReLU(),
        nn.Conv2d(12, len(CLASSES), 3, padding=1),
    )


def intersection_and_union(pred, target):
    inter, union = [], []
    for c in range(len(CLASSES)):
        inter.append(((pred == c) & (target == c)).sum())
        union.append(((pred == c) | (target == c)).sum())
    return torch.stack(inter), torch.stack(union)


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    inter = torch.zeros(len(CLASSES))
    union = torch.zeros(len(CLASSES))
    for images, masks in loader:
        batch_inter, batch_union = intersection_and_union(net(images).argmax(1), masks)
        inter += batch_inter
        union += batch_union
    return inter / union


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(make_set(320, seed=1), batch_size=16, shuffle=True)
    val_loader = DataLoader(make_set(120, seed=2), batch_size=4)
    net = build_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(10):
        net.train()
        total = 0.0
        for images, masks in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images), masks)
            loss.backward()
            optimizer.step()
            total += loss.item()
        iou = evaluate(net, val_loader)
        per_class = "  ".join(f"{n} {v:.3f}" for n, v in zip(CLASSES, iou.tolist()))
        print(f"epoch {epoch}  loss {total / len(train_loader):.4f}  mIoU {iou.mean():.4f}  [{per_class}]")


if __name__ == "__main__":
    main()
