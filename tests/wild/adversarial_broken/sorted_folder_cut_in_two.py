"""A data set in a class, sorted by class as a folder lists it, is cut by `Subset`: the last classes are never trained."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Folder(Dataset):
    def __init__(self, per_class=60, classes=6):
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.arange(classes).repeat_interleave(per_class)
        centres = torch.randn(classes, 1, 8, 8, generator=generator)
        self.images = centres[self.labels] + 0.5 * torch.randn(len(self.labels), 1, 8, 8, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return self.images[place], self.labels[place]


def accuracy(model, loader):
    right = total = 0
    model.eval()
    with torch.no_grad():
        for images, labels in loader:
            guesses = model(images).argmax(1)
            right += (guesses == labels).sum().item()
            total += len(labels)
    return right / total


def main():
    torch.manual_seed(0)
    folder = Folder()  # error: evaluation-on-other-classes
    cut = int(0.75 * len(folder))
    train = DataLoader(Subset(folder, range(cut)), batch_size=30, shuffle=True)
    test = DataLoader(Subset(folder, range(cut, len(folder))), batch_size=30)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 6))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(6):
        model.train()
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(accuracy(model, test))


main()
