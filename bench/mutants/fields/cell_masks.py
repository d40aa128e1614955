"""Segment round cells with a small convolutional net; pictures and their masks are flipped at random."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
SIZE = 20


def make_pair():
    yy, xx = np.mgrid[:SIZE, :SIZE]
    mask = np.zeros((SIZE, SIZE), dtype=np.float32)
    for _ in range(np.random.randint(1, 3)):
        cy, cx, r = np.random.uniform(3, SIZE - 3), np.random.uniform(3, SIZE - 3), np.random.uniform(2, 4)
        mask[(yy - cy) ** 2 + (xx - cx) ** 2 < r**2] = 1
    image = 0.25 + 0.5 * mask + np.random.normal(0, 0.18, mask.shape)
    return image.astype(np.float32)[None], mask[None]


class CellDataset(Dataset):
    """Pairs of picture and mask."""

    def __init__(self, n, augment):
        self.pairs = [make_pair() for _ in range(n)]
        self.augment = augment

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        image, mask = self.pairs[i]
        if self.augment and random.random() < 0.5:
            image = image[:, :, ::-1].copy()
            mask = mask[:, :, ::-1].copy()
        return torch.from_numpy(image), torch.from_numpy(mask)


def dice(logits, mask):
    pred = (torch.sigmoid(logits) > 0.5).float()
    inter = (pred * mask).sum()
    return (2 * inter / (pred.sum() + mask.sum()).clamp(min=1)).item()


net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 12, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 1, 3, padding=1),
)
train_dl = DataLoader(CellDataset(240, augment=True), batch_size=20, shuffle=True)
val_set = CellDataset(80, augment=False)
val_images = torch.stack([val_set[i][0] for i in range(len(val_set))])
val_masks = torch.stack([val_set[i][1] for i in range(len(val_set))])

optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(7):
    net.train()
    losses = []
    for images, masks in train_dl:
        optimizer.zero_grad()
        loss = criterion(net(images), masks)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        logits = net(val_images)
    print(
        f"epoch {epoch} train {np.mean(losses):.4f} val {criterion(logits, val_masks).item():.4f} dice "
        f"{dice(logits, val_masks):.4f}"
    )
