"""The random transform of the training on purpose in evaluation: the mean over several readings of the loader."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)


class Pictures(Dataset):
    def __init__(self, n):
        self.pictures, self.labels = torch.rand(n, 6, 6), torch.randint(0, 2, (n,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = torch.roll(self.pictures[index], int(torch.randint(0, 6, ())), dims=1)
        return picture, int(self.labels[index])


train, val = random_split(Pictures(120), [96, 24])
train_loader, val_loader = DataLoader(train, 12, shuffle=True), DataLoader(val, 12)
model = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        views = [torch.cat([model(x).softmax(1) for x, _ in val_loader]) for _ in range(5)]
        labels = torch.cat([y for _, y in val_loader])
    print(epoch, (torch.stack(views).mean(0).argmax(1) == labels).float().mean().item())
