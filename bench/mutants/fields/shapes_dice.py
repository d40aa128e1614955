"""Segment discs and squares in small noisy images with a soft dice loss."""

import torch
from torch import nn

SIZE, CLASSES = 16, 3


def draw(n, gen):
    """Return images (n, 1, s, s) and masks (n, s, s): 0 ground, 1 disc, 2 square."""
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    centre = torch.randint(4, SIZE - 4, (n, 2, 2), generator=gen)
    radius = torch.randint(2, 4, (n, 1, 1), generator=gen)
    dist = (yy - centre[:, 0, 0, None, None]) ** 2 + (xx - centre[:, 0, 1, None, None]) ** 2
    disc = dist <= radius**2
    square = (
        torch.maximum((yy - centre[:, 1, 0, None, None]).abs(), (xx - centre[:, 1, 1, None, None]).abs()) <= radius - 1
    )
    mask = torch.zeros(n, SIZE, SIZE, dtype=torch.long)
    mask[disc] = 1
    mask[square] = 2
    level = torch.tensor([0.0, 0.8, 1.4])[mask]
    image = level + 0.35 * torch.randn(n, SIZE, SIZE, generator=gen)
    return image.unsqueeze(1), mask


class DiceLoss(nn.Module):
    """Mean over classes of one minus the soft dice of the batch."""

    def __init__(self, eps=1.0):
        super().__init__()
        self.eps = eps

    def forward(self, logits, target):
        probs = torch.softmax(logits, dim=1)
        one_hot = nn.functional.one_hot(target, CLASSES).permute(0, 3, 1, 2).float()
        inter = (probs * one_hot).sum(dim=(0, 2, 3))
        total = probs.sum(dim=(0, 2, 3)) + one_hot.sum(dim=(0, 2, 3))
        return 1 - ((2 * inter + self.eps) / (total + self.eps)).mean()


def iou(pred, target):
    values = []
    for c in range(CLASSES):
        inter = ((pred == c) & (target == c)).sum().item()
        union = ((pred == c) | (target == c)).sum().item()
        values.append(round(inter / max(union, 1), 4))
    return values


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(123)
    images, masks = draw(320, gen)
    val_images, val_masks = draw(100, gen)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, CLASSES, 1)
    )
    criterion = DiceLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(12):
        net.train()
        losses = []
        for idx in torch.randperm(len(images)).split(32):
            optimizer.zero_grad()
            loss = criterion(net(images[idx]), masks[idx])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} dice loss {sum(losses) / len(losses):.4f}")
    net.eval()
    with torch.no_grad():
        pred = net(val_images).argmax(dim=1)
    print("validation IoU per class", iou(pred, val_masks))


if __name__ == "__main__":
    main()
