"""Regression on spectra; `__getitem__` uses the loop variable of `__init__` instead of the index that it gets."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Spectra(Dataset):
    def __init__(self, n):
        self.spectra = torch.rand(n, 1, 40)
        self.means = []
        for i in range(n):
            self.means.append(self.spectra[i].mean().view(1))
            self.current = i

    def __len__(self):
        return len(self.means)

    def __getitem__(self, index):
        return {"spectrum": self.spectra[self.current], "mean": self.means[index]}


train_set = Spectra(400)
train_loader = DataLoader(train_set, 20, shuffle=True, drop_last=True)  # error: samples-all-equal
net = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
net(train_set.spectra[:2])
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
for epoch in range(3):
    total = 0.0
    for batch in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(batch["spectrum"]), batch["mean"])
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(train_loader))
