"""Digit CNN with on-the-fly augmentation, 80/20 random split."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

SEED = 11
EPOCHS = 8
BATCH_SIZE = 64


def augment(img):
    """Random shift by one pixel, random erasing and pixel noise."""
    dy, dx = torch.randint(-1, 2, (2,)).tolist()
    img = torch.roll(img, shifts=(dy, dx), dims=(1, 2))
    if torch.rand(()) < 0.5:
        r, c = torch.randint(0, 6, (2,)).tolist()
        img = img.clone()
        img[:, r:r + 3, c:c + 3] = 0.0
    return img + 0.1 * torch.randn_like(img)


class DigitImages(Dataset):
    def __init__(self, transform=None):
        bunch = load_digits()
        self.images = torch.tensor(bunch.images / 16.0, dtype=torch.float32).unsqueeze(1)
        self.labels = torch.tensor(bunch.target)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.transform is not None:
            img = self.transform(img)
        return img, self.labels[i]


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def run_validation(model, loader):
    model.eval()
    loss, correct, n = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images)
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
            correct += (logits.argmax(1) == labels).sum().item()
            n += labels.numel()
    return loss / n, correct / n


torch.manual_seed(SEED)
train_images, val_images = DigitImages(transform=augment), DigitImages()
n_val = len(train_images) // 5
order = torch.randperm(len(train_images), generator=torch.Generator().manual_seed(SEED)).tolist()
train_set, val_set = Subset(train_images, order[n_val:]), Subset(val_images, order[:n_val])
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
val_loader = DataLoader(val_set, batch_size=256)

model = SmallCNN()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    val_loss, val_acc = run_validation(model, val_loader)
    print(f"epoch {epoch + 1}/{EPOCHS}  val_loss={val_loss:.4f}  val_acc={val_acc:.4f}")
