"""One bright box per image, found by a grid of cells with offsets."""

import torch
import torch.nn as nn

torch.manual_seed(6)
S, CELLS = 16, 4
STRIDE = S // CELLS


def make_scene(n, gen):
    size = torch.randint(3, 7, (n, 2), generator=gen)
    corner = (torch.rand(n, 2, generator=gen) * (S - size)).floor().long()
    images = 0.3 * torch.randn(n, 1, S, S, generator=gen)
    for i in range(n):
        (r, c), (h, w) = corner[i].tolist(), size[i].tolist()
        images[i, 0, r : r + h, c : c + w] += 1.0
    centre = corner + size / 2
    cell = (centre / STRIDE).long().clamp(max=CELLS - 1)
    obj = torch.zeros(n, CELLS, CELLS)
    box = torch.zeros(n, 4, CELLS, CELLS)
    rows = torch.arange(n)
    obj[rows, cell[:, 0], cell[:, 1]] = 1
    box[rows, :, cell[:, 0], cell[:, 1]] = torch.cat([centre / STRIDE - cell, size / STRIDE], dim=1).float()
    return images, obj, box


class GridDetector(nn.Module):
    """Predicts per cell: objectness, centre offset (2) and size (2)."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Conv2d(24, 5, 1)

    def forward(self, x):
        out = self.head(self.features(x))
        return out[:, 0], out[:, 1:]


def detection_loss(obj_logit, box_pred, obj, box):
    obj_loss = nn.functional.binary_cross_entropy_with_logits(obj_logit, obj)
    per_cell = nn.functional.smooth_l1_loss(box_pred, box, reduction="none").sum(dim=1)
    box_loss = (per_cell * obj).sum() / obj.sum().clamp(min=1)
    return obj_loss + box_loss, obj_loss.item(), box_loss.item()


gen = torch.Generator().manual_seed(60)
train_x, train_obj, train_box = make_scene(600, gen)
val_x, val_obj, val_box = make_scene(200, gen)
model = GridDetector()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(12):
    model.train()
    for idx in torch.randperm(len(train_x)).split(32):
        loss, obj_part, box_part = detection_loss(*model(train_x[idx]), train_obj[idx], train_box[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} loss {loss.item():.4f} (objectness {obj_part:.4f}, box {box_part:.4f})")

model.eval()
with torch.no_grad():
    obj_logit, box_pred = model(val_x)
    best = obj_logit.flatten(1).argmax(dim=1)
    hit = best == val_obj.flatten(1).argmax(dim=1)
    rows = torch.arange(len(val_x))
    error = (box_pred.flatten(2)[rows, :, best] - val_box.flatten(2)[rows, :, best]).abs()[hit].mean(dim=0)
print(f"right cell {hit.float().mean():.4f}")
print("mean error of centre and size in pixels", [round(v * STRIDE, 3) for v in error.tolist()])
