"""Two data sets over the same pictures, one with augmentation, each split by a separate draw: the parts overlap."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)
pictures, labels = torch.rand(240, 1, 8, 8), torch.randint(0, 3, (240,))


class Pictures(Dataset):
    def __init__(self, pictures, labels, transform=None):
        self.pictures, self.labels, self.transform = pictures, labels, transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, self.labels[index]


def noise(picture):
    return picture + 0.1 * torch.randn_like(picture)


train_set, _ = random_split(Pictures(pictures, labels, noise), [0.75, 0.25])
_, val_set = random_split(Pictures(pictures, labels), [0.75, 0.25])
train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
val_loader = DataLoader(val_set, batch_size=30)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
best = 0
for epoch in range(4):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:  # error: train-validation-overlap
            correct += (model(x).argmax(1) == y).sum().item()
    best = max(best, correct / len(val_set))
print(best)
