"""The switch of the augmentation is turned off through the part for the validation, and so for both."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Pictures(Dataset):
    def __init__(self, count, augment):
        self.pictures = torch.rand(count, 1, 10, 10)
        self.labels = (self.pictures[:, 0, :5].sum((1, 2)) > 12.5).long().tolist()
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.augment and torch.rand(()) < 0.5:
            picture = picture.flip(-1)
        return picture, self.labels[index]


def get_loaders(batch_size):
    data = Pictures(240, True)
    train, val, test = random_split(data, [160, 40, 40])
    val.dataset.augment = False  # error: augmentation-in-evaluation
    test.dataset.augment = False
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True),
        DataLoader(val, batch_size=40),
        DataLoader(test, batch_size=40),
    )


def main():
    torch.manual_seed(0)
    train_loader, val_loader, test_loader = get_loaders(20)
    model = nn.Sequential(nn.Flatten(), nn.Linear(100, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(epoch, accuracy(model, val_loader))
    print(accuracy(model, test_loader))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        right += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    return right / total


main()
