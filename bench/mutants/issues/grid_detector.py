"""One-stage detector head on a 6x6 grid: objectness plus box offsets for each cell."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CELL, GRID = 4, 6
SIZE = CELL * GRID


def make_image(rng):
    """A bright rectangle per image; the cell holding its centre is responsible for it."""
    h, w = rng.integers(4, 13, 2)
    top, left = rng.integers(0, SIZE - h + 1), rng.integers(0, SIZE - w + 1)
    image = rng.normal(0.0, 0.3, (SIZE, SIZE))
    image[top:top + h, left:left + w] += 1.0
    cy, cx = top + h / 2, left + w / 2
    row, col = min(int(cy // CELL), GRID - 1), min(int(cx // CELL), GRID - 1)
    target = np.zeros((5, GRID, GRID))
    target[0, row, col] = 1.0
    target[1:, row, col] = [
        cy / CELL - row - 0.5, cx / CELL - col - 0.5, np.log(h / CELL), np.log(w / CELL),
    ]
    return image, target, [top, left, top + h, left + w]


def make_set(n, seed):
    rng = np.random.default_rng(seed)
    images, targets, boxes = zip(*(make_image(rng) for _ in range(n)))
    as_tensor = lambda a: torch.tensor(np.stack(a), dtype=torch.float32)
    return TensorDataset(as_tensor(images).unsqueeze(1), as_tensor(targets), as_tensor(boxes))


class Detector(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, ch, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(2 * ch, 2 * ch, 5, padding=2), nn.ReLU(),
        )
        self.head = nn.Conv2d(2 * ch, 5, 1)

    def forward(self, x):
        return self.head(self.backbone(x))


def detection_loss(output, target):
    objectness = F.binary_cross_entropy_with_logits(output[:, 0], target[:, 0])
    box = F.smooth_l1_loss(output[:, 1:], target[:, 1:], reduction="none").sum(1)
    positive = target[:, 0]
    regression = (box * positive).sum() / positive.sum()
    return objectness, regression


def decode(output):
    """Best cell of each image, as a box (top, left, bottom, right)."""
    n = len(output)
    best = output[:, 0].flatten(1).argmax(1)
    row, col = best // GRID, best % GRID
    dy, dx, lh, lw = output[torch.arange(n), 1:, row, col].unbind(1)
    cy, cx = (row + 0.5 + dy) * CELL, (col + 0.5 + dx) * CELL
    h, w = lh.exp() * CELL, lw.exp() * CELL
    return torch.stack([cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2], dim=1)


def box_iou(a, b):
    wh = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0)
    inter = wh.prod(1)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(1)
    return inter / (area(a) + area(b) - inter)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    ious = torch.cat([box_iou(decode(model(images)), boxes) for images, _, boxes in loader])
    return ious.mean().item(), (ious > 0.5).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(make_set(600, seed=0), batch_size=30, shuffle=True)
    val_loader = DataLoader(make_set(200, seed=1), batch_size=100)
    model = Detector()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        model.train()
        sums = torch.zeros(2)
        for images, targets, _ in train_loader:
            optimizer.zero_grad()
            objectness, regression = detection_loss(model(images), targets)
            (objectness + regression).backward()
            optimizer.step()
            sums += torch.stack([objectness, regression]).detach()
        iou, hit = evaluate(model, val_loader)
        obj, reg = (sums / len(train_loader)).tolist()
        print(f"epoch {epoch}  obj {obj:.4f}  box {reg:.4f}  val IoU {iou:.4f}  IoU>0.5 {hit:.4f}")
