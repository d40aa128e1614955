"""One data set with its random transform, split in two: the validation pictures are flipped and cropped too."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, picture):
        for transform in self.transforms:
            picture = transform(picture)
        return picture


def flip(picture):
    return picture.flip(-1) if random.random() < 0.5 else picture


def crop(picture):
    top, left = random.randint(0, 4), random.randint(0, 4)
    return picture[:, top : top + 8, left : left + 8]


class Pictures(Dataset):
    def __init__(self, n, transform=None):
        self.pictures, self.labels = torch.rand(n, 1, 12, 12), torch.randint(0, 3, (n,)).tolist()
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index]
        return self.transform(picture) if self.transform else picture, self.labels[index]


data = Pictures(160, transform=Compose([flip, crop]))
train_set, val_set = random_split(data, [128, 32])
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
val_loader = DataLoader(val_set, batch_size=16)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:  # error: augmentation-in-evaluation
            correct += (model(x).argmax(1) == y).sum().item()
    print(epoch, correct / len(val_set))
