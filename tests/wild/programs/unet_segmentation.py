"""Healthy: U-Net segmentation: BCE with logits plus soft Dice, skip connections, IoU over the whole validation set."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class DoubleConv(nn.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False), nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False), nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self, n_channels=1, n_classes=1, w=6):
        super().__init__()
        self.inc = DoubleConv(n_channels, w)
        self.down1 = DoubleConv(w, 2 * w)
        self.down2 = DoubleConv(2 * w, 4 * w)
        self.up1 = nn.ConvTranspose2d(4 * w, 2 * w, 2, stride=2)
        self.conv1 = DoubleConv(4 * w, 2 * w)
        self.up2 = nn.ConvTranspose2d(2 * w, w, 2, stride=2)
        self.conv2 = DoubleConv(2 * w, w)
        self.outc = nn.Conv2d(w, n_classes, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(F.max_pool2d(x1, 2))
        x3 = self.down2(F.max_pool2d(x2, 2))
        x = self.conv1(torch.cat([x2, self.up1(x3)], dim=1))
        x = self.conv2(torch.cat([x1, self.up2(x)], dim=1))
        return self.outc(x)


class Discs(Dataset):
    def __init__(self, n):
        g = torch.arange(16.0)
        c, r = 4 + 8 * torch.rand(n, 2, 1, 1), 2 + 3 * torch.rand(n, 1, 1)
        self.masks = (((g[None, :, None] - c[:, 0]) ** 2 + (g[None, None] - c[:, 1]) ** 2) < r ** 2).float()[:, None]
        self.images = (self.masks - 0.15) * 1.5 + 0.7 * torch.randn(n, 1, 16, 16)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"image": self.images[i], "mask": self.masks[i]}


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum((1, 2, 3))
    return 1 - ((2 * inter + eps) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + eps)).mean()


@torch.inference_mode()
def evaluate(net, dataloader):
    net.eval()
    inter = union = 0
    for batch in dataloader:
        pred, true = net(batch["image"]) > 0, batch["mask"] > 0.5
        inter += (pred & true).sum().item()
        union += (pred | true).sum().item()
    net.train()
    return inter / union


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = DataLoader(Discs(160), shuffle=True, batch_size=16)
    val_loader = DataLoader(Discs(48), shuffle=False, drop_last=False, batch_size=16)
    net = UNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(4):
        net.train()
        epoch_loss = 0
        for batch in train_loader:
            masks_pred = net(batch["image"])
            loss = criterion(masks_pred, batch["mask"]) + dice_loss(masks_pred, batch["mask"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        print(f"epoch {epoch} loss {epoch_loss / len(train_loader):.4f} val IoU {evaluate(net, val_loader):.4f}")
