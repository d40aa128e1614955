"""A regression of boxes: the line of the height was copied from that of the width, with its index."""

import torch
from torch import nn

torch.manual_seed(0)
GRID = torch.arange(12.0)


def scenes(count):
    center, size = torch.rand(count, 2) * 6 + 3, torch.rand(count, 2) * 3 + 1
    inside = ((GRID[None, :, None] - center[:, None]).abs() < size[:, None] / 2).float()
    images = inside[:, :, 1][:, :, None] * inside[:, :, 0][:, None]
    return images + 0.1 * torch.randn_like(images), torch.cat([center / 12, size / 12], 1)


class Locator(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.box = nn.Linear(8 * 36, 4)

    def forward(self, images):
        return self.box(self.features(images.unsqueeze(1)))


def box_loss(predicted, target):
    loss_x = nn.functional.smooth_l1_loss(predicted[:, 0], target[:, 0])
    loss_y = nn.functional.smooth_l1_loss(predicted[:, 1], target[:, 1])
    loss_w = nn.functional.smooth_l1_loss(predicted[:, 2], target[:, 2])
    loss_h = nn.functional.smooth_l1_loss(predicted[:, 2], target[:, 3])
    return loss_x + loss_y + loss_w + loss_h


images, boxes = scenes(600)
held_images, held_boxes = scenes(200)
model = Locator()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(6):
    for rows in torch.randperm(len(images)).split(40):
        optimizer.zero_grad()
        loss = box_loss(model(images[rows]), boxes[rows])
        loss.backward()  # error: parameters-without-effect
        optimizer.step()

model.eval()
with torch.no_grad():
    error = (model(held_images) - held_boxes).abs().mean(0)
print("mean error of x, y, width and height:", [round(value, 3) for value in error.tolist()])
