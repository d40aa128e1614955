import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def draw_scene(generator, size=24):
    """One bright disc on a noisy background and its mask."""
    cx, cy = (torch.rand(2, generator=generator) * (size - 8) + 4).tolist()
    radius = 2.5 + 2.5 * torch.rand((), generator=generator).item()
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    mask = ((xx - cx) ** 2 + (yy - cy) ** 2 <= radius ** 2).float()
    image = 0.9 * mask + 0.5 * torch.randn(size, size, generator=generator)
    return image.unsqueeze(0), mask.unsqueeze(0)


class RandomHorizontalFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image, mask):
        if torch.rand(()) < self.p:
            image, mask = image.flip(-1), mask.flip(-1)
        return image, mask


class DiscDataset(Dataset):
    def __init__(self, n, generator, augment=None):
        self.samples = [draw_scene(generator) for _ in range(n)]
        self.augment = augment

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        image, mask = self.samples[i]
        if self.augment is not None:
            image, mask = self.augment(image, mask)
        return image, mask


class SmallUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.bottom = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(),
                                    nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU())
        self.up = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.ReLU(),
                                nn.Conv2d(width, 1, 1))

    def forward(self, x):
        skip = self.down(x)
        deep = self.bottom(F.max_pool2d(skip, 2))
        deep = F.interpolate(deep, scale_factor=2, mode="nearest")
        return self.up(torch.cat([skip, deep], dim=1))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    intersection, union = 0.0, 0.0
    for image, mask in loader:
        predicted = model(image).sigmoid() > 0.5
        truth = mask > 0.5
        intersection += (predicted & truth).sum().item()
        union += (predicted | truth).sum().item()
    return intersection / max(union, 1.0)


if __name__ == "__main__":
    torch.manual_seed(19)
    generator = torch.Generator().manual_seed(19)
    train_set = DiscDataset(300, generator, augment=RandomHorizontalFlip())
    val_set = DiscDataset(100, generator)
    train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=50)

    model = SmallUNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(1, 13):
        model.train()
        total = 0.0
        for image, mask in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(image), mask)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(image)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}  loss {total / len(train_set):.4f}  val IoU {validate(model, val_loader):.4f}")
