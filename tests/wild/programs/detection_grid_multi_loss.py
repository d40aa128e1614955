"""Healthy: a YOLO-like detector: targets of any number per image by collate_fn, empty images, several losses, one of them zero at times."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)
SIZE, GRID = 24, 6


class Shapes(Dataset):
    """Squares (class 0) and crosses (class 1); sometimes nothing at all."""

    def __init__(self, n):
        self.items = [self.draw() for _ in range(n)]

    def draw(self):
        image, boxes, labels = 0.1 * torch.randn(1, SIZE, SIZE), [], []
        for _ in range(int(torch.randint(0, 4, ()))):
            w = int(torch.randint(4, 8, ()))
            x, y = (int(v) for v in torch.randint(0, SIZE - w, (2,)))
            kind = int(torch.randint(0, 2, ()))
            if kind:
                image[0, y + w // 2, x:x + w] += 2
                image[0, y:y + w, x + w // 2] += 2
            else:
                image[0, y:y + w, x:x + w] += 1
            boxes.append([x, y, x + w, y + w])
            labels.append(kind)
        return image, {"boxes": torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4), "labels": torch.tensor(labels, dtype=torch.long)}

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate_fn(batch):
    return tuple(zip(*batch))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU())
        self.objectness, self.classes, self.boxes = nn.Conv2d(24, 1, 1), nn.Conv2d(24, 2, 1), nn.Conv2d(24, 4, 1)
        nn.init.constant_(self.objectness.bias, -2.0)

    def forward(self, images, targets=None):
        h = self.backbone(torch.stack(images))
        score, label, box = self.objectness(h)[:, 0], self.classes(h), self.boxes(h)
        if not self.training:
            return torch.sigmoid(score), label.argmax(1), box
        hot = torch.zeros_like(score)
        index, kinds, offsets = [], [], []
        for n, target in enumerate(targets):
            centre = (target["boxes"][:, :2] + target["boxes"][:, 2:]) / 2
            size = target["boxes"][:, 2:] - target["boxes"][:, :2]
            cell = (centre / SIZE * GRID).long().clamp(max=GRID - 1)
            hot[n, cell[:, 1], cell[:, 0]] = 1
            index += [(n, int(cy), int(cx)) for cx, cy in cell]
            kinds.append(target["labels"])
            offsets.append(torch.cat([centre / SIZE * GRID - cell, size / SIZE * GRID], 1))
        losses = {"objectness": F.binary_cross_entropy_with_logits(score, hot, pos_weight=torch.tensor(4.0))}
        if index:
            n, cy, cx = torch.tensor(index).T
            losses["class"] = F.cross_entropy(label[n, :, cy, cx], torch.cat(kinds))
            losses["box"] = F.smooth_l1_loss(box[n, :, cy, cx], torch.cat(offsets))
        return losses


def train_one_epoch(model, optimizer, data_loader):
    model.train()
    for images, targets in data_loader:
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
    return {k: round(v.item(), 3) for k, v in loss_dict.items()}


@torch.inference_mode()
def evaluate(model, data_loader):
    model.eval()
    hits = wanted = 0
    for images, targets in data_loader:
        score, label, _ = model(images)
        for n, target in enumerate(targets):
            centre = (target["boxes"][:, :2] + target["boxes"][:, 2:]) / 2
            cell = (centre / SIZE * GRID).long().clamp(max=GRID - 1)
            wanted += len(cell)
            hits += sum(int(score[n, y, x] > 0.5 and label[n, y, x] == k) for (x, y), k in zip(cell, target["labels"]))
    return hits / wanted


model = Detector()
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(params, lr=0.05, momentum=0.9, weight_decay=5e-4)
lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
data_loader = DataLoader(Shapes(320), batch_size=16, shuffle=True, collate_fn=collate_fn)
data_loader_test = DataLoader(Shapes(96), batch_size=32, shuffle=False, collate_fn=collate_fn)
for epoch in range(6):
    losses = train_one_epoch(model, optimizer, data_loader)
    lr_scheduler.step()
    print(epoch, losses, "recall %.3f" % evaluate(model, data_loader_test))
