"""Shapes in noise, found pixel by pixel: functions, no loader, class weights and dice, mean of intersections over unions."""

import torch
import torch.nn.functional as F
from torch import nn

CLASSES = 3


def draw(count, generator):
    images = torch.randn(count, 1, 24, 24, generator=generator) * 0.4
    masks = torch.zeros(count, 24, 24, dtype=torch.long)
    for i in range(count):
        top, left = torch.randint(0, 14, (2,), generator=generator).tolist()
        kind = int(torch.randint(1, CLASSES, (1,), generator=generator))
        size = int(torch.randint(5, 10, (1,), generator=generator))
        masks[i, top : top + size, left : left + size] = kind
        images[i, 0, top : top + size, left : left + size] += 1.0 if kind == 1 else -1.0
    return images, masks


def block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = block(1, 12), block(12, 24)
        self.up = block(24 + 12, 12)
        self.out = nn.Conv2d(12, CLASSES, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        second = F.interpolate(second, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.up(torch.cat([first, second], dim=1)))


def dice_loss(logits, masks):
    p = logits.softmax(dim=1)
    hot = F.one_hot(masks, CLASSES).permute(0, 3, 1, 2).float()
    inter = (p * hot).sum((0, 2, 3))
    union = p.sum((0, 2, 3)) + hot.sum((0, 2, 3))
    return 1 - (2 * inter / (union + 1e-6)).mean()


def mean_iou(confusion):
    inter = confusion.diag()
    union = confusion.sum(0) + confusion.sum(1) - inter
    return (inter / union.clamp(min=1)).mean().item()


def validate(model, images, masks):
    model.eval()
    confusion = torch.zeros(CLASSES, CLASSES)
    right, pixels = 0, 0
    with torch.no_grad():
        for i in range(0, len(images), 20):
            predicted = model(images[i : i + 20]).argmax(dim=1)
            actual = masks[i : i + 20]
            confusion += torch.bincount((actual * CLASSES + predicted).flatten(), minlength=CLASSES**2).view(CLASSES, CLASSES)
            right += (predicted == actual).sum().item()
            pixels += actual.numel()
    return right / pixels, mean_iou(confusion)


def train_epoch(model, optimizer, images, masks, weights):
    model.train()
    for i in torch.randperm(len(images)).split(16):
        optimizer.zero_grad()
        logits = model(images[i])
        loss = F.cross_entropy(logits, masks[i], weight=weights) + dice_loss(logits, masks[i])
        loss.backward()
        optimizer.step()


def main():
    generator = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    train_images, train_masks = draw(160, generator)
    valid_images, valid_masks = draw(60, generator)
    weights = torch.tensor([0.3, 1.0, 1.0])
    model = SmallUNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        train_epoch(model, optimizer, train_images, train_masks, weights)
        accuracy, iou = validate(model, valid_images, valid_masks)
        print(f"epoch {epoch} pixel accuracy {accuracy:.4f} mean iou {iou:.4f}")


if __name__ == "__main__":
    main()
