"""Binary segmentation with a Dice + BCE loss; pixels labelled 255 were left undecided."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

IGNORE = 255
SIZE = 20


def draw_scene(rng, annotate_all):
    """Several blobs; in training scenes an annotator leaves about half of them undecided."""
    yy, xx = np.mgrid[:SIZE, :SIZE]
    mask = np.zeros((SIZE, SIZE), dtype=np.int64)
    undecided = np.zeros((SIZE, SIZE), dtype=bool)
    for _ in range(rng.integers(2, 5)):
        cy, cx = rng.integers(2, SIZE - 2, 2)
        blob = (yy - cy) ** 2 + (xx - cx) ** 2 <= rng.integers(4, 10)
        mask[blob] = 1
        if not annotate_all and rng.random() < 0.55:
            undecided |= blob
    image = mask + rng.normal(0.0, 0.5, mask.shape)
    mask[undecided] = IGNORE
    return image.astype(np.float32), mask


def scenes(n, seed, annotate_all):
    rng = np.random.default_rng(seed)
    pairs = [draw_scene(rng, annotate_all) for _ in range(n)]
    images = torch.from_numpy(np.stack([p[0] for p in pairs])).unsqueeze(1)
    masks = torch.from_numpy(np.stack([p[1] for p in pairs]))
    return TensorDataset(images, masks)


class SegNet(nn.Module):
    def __init__(self, ch=10):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, ch, 3, padding=1), nn.ReLU(),
            nn.Conv2d(ch, ch, 3, padding=1), nn.ReLU(),
            nn.Conv2d(ch, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


class DiceBCELoss(nn.Module):
    def __init__(self, ignore_index, smooth=1.0):
        super().__init__()
        self.ignore_index = ignore_index
        self.smooth = smooth

    def forward(self, logits, target):
        valid = target != self.ignore_index
        truth = (target == 1).float()
        bce = F.binary_cross_entropy_with_logits(logits[valid], truth[valid])
        prob = torch.sigmoid(logits) * valid
        inter = (prob * truth).sum()
        dice = (2 * inter + self.smooth) / (prob.sum() + truth.sum() + self.smooth)
        return bce + 1.0 - dice


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    tp = fp = fn = 0
    for images, masks in loader:
        pred = net(images) > 0
        truth = masks == 1
        tp += (pred & truth).sum().item()
        fp += (pred & ~truth).sum().item()
        fn += (~pred & truth).sum().item()
    return 2 * tp / (2 * tp + fp + fn), tp / (tp + fn)


def main():
    torch.manual_seed(0)
    train_loader = DataLoader(scenes(300, seed=1, annotate_all=False), batch_size=20, shuffle=True)
    val_loader = DataLoader(scenes(100, seed=2, annotate_all=True), batch_size=50)
    net = SegNet()
    criterion = DiceBCELoss(IGNORE)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(10):
        net.train()
        running = 0.0
        for images, masks in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(images), masks)
            loss.backward()
            optimizer.step()
            running += loss.item()
        dice, recall = evaluate(net, val_loader)
        print(f"epoch {epoch}  loss {running / len(train_loader):.4f}  val dice {dice:.4f}  recall {recall:.4f}")


if __name__ == "__main__":
    main()
