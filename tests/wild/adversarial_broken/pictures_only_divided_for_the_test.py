"""A data set normalises its pictures for the training; that of the test leaves them in the range 0 to 1."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(8)
MEAN, STD = torch.tensor([0.35, 0.3, 0.3]).view(3, 1, 1), torch.tensor([0.22, 0.25, 0.2]).view(3, 1, 1)


class Pictures(Dataset):
    def __init__(self, count, train):
        self.labels = torch.randint(0, 3, (count,))
        self.pixels = (150 * torch.rand(count, 3, 8, 8).square()).long()
        self.pixels[torch.arange(count), self.labels] += 60
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pixels[index] / 255
        if self.train:
            picture = (picture - MEAN) / STD
            if torch.rand(()) < 0.5:
                picture = picture.flip(2)
        return picture, self.labels[index]


train = DataLoader(Pictures(400, True), 25, shuffle=True)
test = DataLoader(Pictures(100, False), 50)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 3))
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(4):
    model.train()
    for pictures, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for pictures, labels in test:
            right += (model(pictures).argmax(1) == labels).sum().item()  # error: inputs-on-another-scale
    print(f"epoch {epoch} test accuracy {right / 100:.2f}")
