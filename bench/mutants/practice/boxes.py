import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

# Single-object localisation. An image (H x W, not square) has one bright ellipse or
# rectangle and some clutter; the network gives the box and whether an object is there.
H, W = 32, 48


def draw(rng):
    img = rng.normal(0.0, 0.12, (H, W)).astype(np.float32)
    for _ in range(3):                                     # thin clutter lines
        r = rng.integers(0, H)
        c = rng.integers(0, W - 10)
        img[r, c:c + 10] += 0.5
    yy, xx = np.mgrid[0:H, 0:W]
    if rng.random() < 0.2:
        return img, np.zeros(4, np.float32), 0.0
    bw, bh = rng.integers(8, 24), rng.integers(6, 16)
    x0, y0 = rng.integers(0, W - bw + 1), rng.integers(0, H - bh + 1)
    if rng.random() < 0.5:
        inside = (xx >= x0) & (xx < x0 + bw) & (yy >= y0) & (yy < y0 + bh)
    else:
        cx, cy = x0 + bw / 2 - 0.5, y0 + bh / 2 - 0.5
        inside = ((xx - cx) / (bw / 2)) ** 2 + ((yy - cy) / (bh / 2)) ** 2 <= 1
    img[inside] += rng.uniform(0.5, 1.0)
    return img, np.array([x0, y0, x0 + bw, y0 + bh], np.float32), 1.0


class Shapes(Dataset):
    """Images in memory; boxes as x0, y0, x1, y1 in pixels."""

    def __init__(self, n, seed, stats=None, train=False):
        rng = np.random.default_rng(seed)
        rows = [draw(rng) for _ in range(n)]
        self.images = torch.from_numpy(np.stack([r[0] for r in rows]))
        self.boxes = torch.from_numpy(np.stack([r[1] for r in rows]))
        self.present = torch.tensor([r[2] for r in rows])
        self.train = train
        self.stats = stats or (self.images.mean().item(), self.images.std().item())

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, box, present = self.images[i], self.boxes[i], self.present[i]
        if self.train and torch.rand(()) < 0.5:            # mirror left-right
            image = image.flip(1)
            if present:
                box = torch.stack([W - box[2], box[1], W - box[0], box[3]])
        image = (image - self.stats[0]) / self.stats[1]
        return image.unsqueeze(0), box, present


def to_target(box):
    """Corners in pixels -> centre and size, each divided by the image's size."""
    x0, y0, x1, y1 = box.unbind(-1)
    return torch.stack([(x0 + x1) / 2 / W, (y0 + y1) / 2 / H, (x1 - x0) / W, (y1 - y0) / H], dim=-1)


def to_box(target):
    cx, cy, w, h = target.unbind(-1)
    return torch.stack([(cx - w / 2) * W, (cy - h / 2) * H, (cx + w / 2) * W, (cy + h / 2) * H], dim=-1)


def iou(a, b):
    lt = torch.maximum(a[..., :2], b[..., :2])
    rb = torch.minimum(a[..., 2:], b[..., 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=-1)
    area_a = (a[..., 2:] - a[..., :2]).clamp(min=0).prod(dim=-1)
    area_b = (b[..., 2:] - b[..., :2]).clamp(min=0).prod(dim=-1)
    return inter / (area_a + area_b - inter + 1e-6)


class Locator(nn.Module):
    def __init__(self):
        super().__init__()

        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())

        self.backbone = nn.Sequential(block(1, 12), block(12, 24), block(24, 32))
        self.neck = nn.Sequential(nn.Flatten(), nn.Linear(32 * (H // 8) * (W // 8), 96), nn.ReLU(), nn.Dropout(0.1))
        self.box = nn.Linear(96, 4)
        self.objectness = nn.Linear(96, 1)

    def forward(self, x):
        h = self.neck(self.backbone(x))
        return torch.sigmoid(self.box(h)), self.objectness(h).squeeze(1)


def criterion(pred_box, pred_obj, box, present):
    mask = present > 0
    target = to_target(box)
    l1 = nn.functional.smooth_l1_loss(pred_box[mask], target[mask], beta=0.05)
    overlap = 1 - iou(to_box(pred_box[mask]), box[mask]).mean()
    obj = nn.functional.binary_cross_entropy_with_logits(pred_obj, present)
    return 5 * l1 + overlap + 0.5 * obj


def evaluate(net, loader):
    net.eval()
    ious, right, n = [], 0, 0
    with torch.no_grad():
        for image, box, present in loader:
            pred_box, pred_obj = net(image)
            mask = present > 0
            ious.append(iou(to_box(pred_box[mask]), box[mask]))
            right += ((pred_obj > 0) == mask).sum().item()
            n += len(image)
    ious = torch.cat(ious)
    return ious.mean().item(), (ious > 0.7).float().mean().item(), right / n


def run():
    torch.manual_seed(2)
    train = Shapes(1300, seed=10, train=True)
    val = Shapes(300, seed=11, stats=train.stats)
    test = Shapes(400, seed=12, stats=train.stats)
    net = Locator()
    decay = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]
    optim = torch.optim.AdamW([{"params": decay, "weight_decay": 1e-2}, {"params": plain, "weight_decay": 0.0}], lr=3e-3)
    epochs = 9
    loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)
    sched = torch.optim.lr_scheduler.MultiStepLR(optim, milestones=[5, 8], gamma=0.3)
    best, keep = -1.0, None
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for image, box, present in loader:
            pred_box, pred_obj = net(image)
            loss = criterion(pred_box, pred_obj, box, present)
            optim.zero_grad()
            loss.backward()
            optim.step()
            total += loss.item()
        sched.step()
        miou, _, acc = evaluate(net, DataLoader(val, batch_size=100))
        print(f"epoch {epoch} loss {total / len(loader):.5f} val mIoU {miou:.4f} obj {acc:.4f}")
        if miou > best:
            best = miou
            keep = {k: v.detach().clone() for k, v in net.state_dict().items()}
    net.load_state_dict(keep)
    miou, at70, acc = evaluate(net, DataLoader(test, batch_size=100))
    print(f"test mIoU {miou:.5f}  IoU>0.7 {at70:.4f}  objectness accuracy {acc:.4f}")


run()
