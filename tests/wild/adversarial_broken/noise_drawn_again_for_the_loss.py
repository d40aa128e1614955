"""A denoiser of digits is compared with other noise than was added."""

import torch
from sklearn.datasets import load_digits
from torch import nn


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(50, 16)
        self.net = nn.Sequential(nn.Linear(64 + 16, 128), nn.SiLU(), nn.Linear(128, 64))

    def forward(self, noisy, times):
        return self.net(torch.cat([noisy, self.time(times)], 1))


def train(images, epochs=12, size=64):
    kept = torch.linspace(0.99, 0.05, 50)
    model, criterion = Denoiser(), nn.MSELoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(size):
            clean, times = images[rows], torch.randint(50, (len(rows),))
            share = kept[times, None]
            noisy = share.sqrt() * clean + (1 - share).sqrt() * 0.5 * torch.randn_like(clean)
            loss = criterion(model(noisy, times), 0.5 * torch.randn_like(clean))  # error: loss-at-chance
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


torch.manual_seed(0)
torch.set_num_threads(1)
train(torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1)
