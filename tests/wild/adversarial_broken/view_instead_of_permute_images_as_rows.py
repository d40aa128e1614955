"""Rows of pictures as a sequence for a GRU, by a reshape that also moves the batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(200, 1, 8, 6)
labels = (images[:, 0, 0].mean(1) > 0.5).long()
loaders = [
    DataLoader(TensorDataset(images[:160], labels[:160]), batch_size=20, shuffle=True),
    DataLoader(TensorDataset(images[160:], labels[160:]), batch_size=20),
]


class RowReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 16)
        self.classifier = nn.Linear(16, 2)

    def rows(self, x):
        x = x.squeeze(1)
        return torch.reshape(x, (8, -1, 6))  # error: view-instead-of-permute

    def forward(self, x):
        _, state = self.gru(self.rows(x))
        return self.classifier(state[-1])


model = RowReader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _epoch in range(3):
    for phase, loader in zip(("train", "val"), loaders, strict=True):
        model.train(phase == "train")
        for x, y in loader:
            with torch.set_grad_enabled(phase == "train"):
                loss = nn.functional.cross_entropy(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
