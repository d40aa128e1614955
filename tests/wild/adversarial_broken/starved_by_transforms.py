"""Slow transforms of each sample, done by the loop itself; half of the time is said to be the network's."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Augment:
    def __call__(self, image):
        time.sleep(0.009)
        return image.flip(-1) if torch.rand(()) < 0.5 else image


class Images(Dataset):
    def __init__(self, transform=None):
        self.images = torch.randn(96, 1, 8, 8)
        self.labels = (self.images.mean(dim=(1, 2, 3)) > 0).long()
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        return (self.transform(image) if self.transform else image), self.labels[i]


loader = DataLoader(Images(Augment()), batch_size=8, shuffle=True, drop_last=True)  # error: loader-starves-training
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(10):
    for images, labels in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
