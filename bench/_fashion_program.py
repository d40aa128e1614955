"""FashionMNIST as a beginner writes it: each sample decoded from a Pillow image, in this process; for `tune.py`."""

import sys
from pathlib import Path

import numpy
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from truestep.data.idx_files import read_idx

FOLDER = Path(sys.argv[1])


class FashionMNIST(Dataset):
    def __init__(self, part):
        self.data = read_idx(FOLDER / f"{part}-images-idx3-ubyte.gz")
        self.targets = read_idx(FOLDER / f"{part}-labels-idx1-ubyte.gz").long()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image = Image.fromarray(self.data[index].numpy())
        x = torch.from_numpy(numpy.array(image, numpy.uint8, copy=True)).view(1, 28, 28).float().div(255)
        return (x - 0.286) / 0.353, int(self.targets[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(),
            nn.Linear(784, 256),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(256, 10),
        )

    def forward(self, x):
        return self.net(x)


torch.manual_seed(0)
train = DataLoader(FashionMNIST("train"), batch_size=64, shuffle=True)
test = DataLoader(FashionMNIST("t10k"), batch_size=64)
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in test:
            right += (model(x).argmax(1) == y).sum().item()
    print(epoch, right / 10000)
