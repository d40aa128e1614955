"""The transform is switched off for each evaluation of a part, and back on for the training."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Signals(Dataset):
    def __init__(self, transform=None):
        self.x = torch.rand(120, 8)
        self.y, self.transform = (self.x[:, 0] > self.x[:, 1]).long().tolist(), transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return (x if self.transform is None else self.transform(x)), self.y[i]


def shake(x):
    return x + 0.1 * torch.randn_like(x)


torch.manual_seed(0)
data = Signals(shake)
train_set, val_set = random_split(data, [80, 40])
train_loader, val_loader = DataLoader(train_set, batch_size=16, shuffle=True), DataLoader(val_set, batch_size=40)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
val_set.dataset.transform = None
with torch.no_grad():
    net.eval()
    print("before", sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader) / len(val_set))
for _ in range(4):
    net.train()
    train_set.dataset.transform = shake
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    val_set.dataset.transform = None
    with torch.no_grad():
        print(sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader) / len(val_set))
