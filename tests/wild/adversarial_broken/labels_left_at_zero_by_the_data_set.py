"""A data set allocates an array of labels and returns it before the labels are written into it."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Tones(Dataset):
    def __init__(self, count: int) -> None:
        self.pitch = torch.rand(count)
        self.labels = torch.zeros(count, dtype=torch.long)

    def __len__(self) -> int:
        return len(self.pitch)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        wave = torch.sin(torch.arange(40) * (0.1 + self.pitch[index]))
        return wave + 0.1 * torch.randn(40), self.labels[index]


net = nn.Sequential(nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 4), nn.LogSoftmax(dim=1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(4):
    for wave, label in DataLoader(Tones(800), batch_size=80, shuffle=True):
        optimizer.zero_grad()
        F.nll_loss(net(wave), label).backward()  # error: labels-all-equal
        optimizer.step()
