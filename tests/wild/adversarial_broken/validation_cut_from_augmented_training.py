"""The validation pictures are a slice of those of the training, which are shifted at random when they are read."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, pictures, labels, shift):
        self.pictures, self.labels, self.shift = pictures, labels, shift

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.shift:
            picture = picture.roll(int(torch.randint(-2, 3, ())), dims=-1)
        return picture, self.labels[index]


def loaders(pictures, labels):
    train = Pictures(pictures[:360], labels[:360], shift=2)
    val = Pictures(pictures[280:360], labels[280:360], shift=0)
    return DataLoader(train, batch_size=36, shuffle=True), DataLoader(val, batch_size=40)


torch.manual_seed(15)
labels = torch.randint(0, 4, (400,))
pictures = torch.rand(400, 1, 8, 8)
pictures[torch.arange(400), 0, 2 * labels] += 0.7
train_loader, val_loader = loaders(pictures, labels)
model = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(384, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    with torch.no_grad():
        for inputs, targets in val_loader:  # error: train-validation-overlap
            print(epoch, F.cross_entropy(model(inputs), targets).item())
