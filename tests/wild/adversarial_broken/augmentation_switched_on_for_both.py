"""A data set has a switch for its random shifts, and the one for the evaluation is built with it too."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, waves, kinds, is_train=True):
        self.waves, self.kinds, self.is_train = waves, kinds, is_train

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        wave = self.waves[index]
        if self.is_train:
            wave = wave.roll(int(torch.randint(0, 16, ()))) + 0.5 * torch.randn(32)
        return wave, self.kinds[index]


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for waves, kinds in loader:  # error: augmentation-in-evaluation
            right += (model(waves).argmax(1) == kinds).sum().item()
    return right / len(loader.dataset)


torch.manual_seed(11)
kinds = torch.randint(0, 3, (400,))
waves = torch.sin((kinds[:, None] + 1) * torch.linspace(0, 6.3, 32)) + 0.1 * torch.randn(400, 32)
train = DataLoader(Signals(waves[:300], kinds[:300]), batch_size=30, shuffle=True)
val = DataLoader(Signals(waves[300:], kinds[300:]), batch_size=50)
model = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(4):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    print(evaluate(model, val))
