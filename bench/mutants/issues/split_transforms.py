import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset, Subset, random_split

CANVAS = 14


def place_on_canvas(images, generator):
    """Put every 8x8 digit at its own place on a larger empty canvas."""
    canvas = torch.zeros(len(images), 1, CANVAS, CANVAS)
    for i, image in enumerate(images):
        top, left = torch.randint(0, CANVAS - 8 + 1, (2,), generator=generator).tolist()
        canvas[i, 0, top:top + 8, left:left + 8] = image
    return canvas


class CanvasDigits(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images = images
        self.labels = labels
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[i]


class RandomRoll:
    """Shift the picture by some pixels, wrapping around."""

    def __init__(self, max_shift):
        self.max_shift = max_shift

    def __call__(self, image):
        dy, dx = torch.randint(-self.max_shift, self.max_shift + 1, (2,)).tolist()
        return torch.roll(image, (dy, dx), dims=(1, 2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(CANVAS * CANVAS, 128)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(128, 10)

    def forward(self, x):
        return self.out(self.drop(torch.relu(self.hidden(x.flatten(1)))))


def epoch_loss(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


torch.manual_seed(14)
generator = torch.Generator().manual_seed(14)
digits = load_digits()
images = place_on_canvas(torch.tensor(digits.images, dtype=torch.float32) / 16.0, generator)
labels = torch.tensor(digits.target)

dataset = CanvasDigits(images, labels, transform=RandomRoll(4))
train_set, val_set = random_split(dataset, [1297, 500], generator=generator)
val_set = Subset(CanvasDigits(images, labels), val_set.indices)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)

model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(1, 31):
    loss = epoch_loss(model, train_loader, criterion, optimizer)
    if epoch % 6 == 0:
        print(f"epoch {epoch:2d}  train loss {loss:.4f}  val acc {accuracy(model, val_loader):.4f}")
