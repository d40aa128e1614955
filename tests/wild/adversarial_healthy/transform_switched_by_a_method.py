"""The plain transform is assigned through a part at first, and a method of the data set switches it before each loop."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Flowers(Dataset):
    def __init__(self, transform=None):
        g = torch.Generator().manual_seed(0)
        self.y = torch.randint(0, 3, (600,), generator=g)
        self.x = torch.randn(600, 16, generator=g) + nn.functional.one_hot(self.y, 16) * 2
        self.transform = transform

    def use(self, transform):
        self.transform = transform

    def __len__(self):
        return 600

    def __getitem__(self, i):
        v = self.x[i]
        return (self.transform(v) if self.transform else v), self.y[i]


def augment(v):
    return v + 0.5 * torch.randn_like(v)


def plain(v):
    return v


torch.manual_seed(0)
full = Flowers(transform=augment)
train_set, val_set = random_split(full, [450, 150])
val_set.dataset.transform = plain
train_loader, val_loader = DataLoader(train_set, batch_size=30, shuffle=True), DataLoader(val_set, batch_size=50)
net = nn.Linear(16, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(4):
    full.use(augment)
    for x, y in train_loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    full.use(plain)
    net.eval()
    with torch.no_grad():
        print(epoch, sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader) / 150)
    net.train()
