"""Views of pictures in a list, joined to one batch: the list holds one view twice."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Views(Dataset):
    def __init__(self):
        self.pictures = torch.randn(96, 1, 6, 6)

    def __len__(self):
        return len(self.pictures)

    def augment(self, picture):
        return picture + 0.3 * torch.randn_like(picture)

    def __getitem__(self, index):
        return [self.augment(self.pictures[index])] * 2  # error: batch-parts-equal


torch.manual_seed(1)
encoder = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for _ in range(4):
    for views in DataLoader(Views(), batch_size=24, shuffle=True):
        pictures = torch.cat(views, dim=0)
        features = nn.functional.normalize(encoder(pictures), dim=1)
        scores = features @ features.t() - 9 * torch.eye(48)
        loss = nn.functional.cross_entropy(scores, torch.arange(48).roll(24))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
