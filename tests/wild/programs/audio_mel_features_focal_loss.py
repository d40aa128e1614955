"""Keyword-like audio clips: log-mel features computed by hand, rare positives, a focal loss by hand and a weighted sampler."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

RATE, LENGTH, N_FFT, HOP, MELS = 4000, 2000, 256, 128, 16


def mel_filters():
    mel = lambda f: 2595 * math.log10(1 + f / 700)
    points = torch.linspace(mel(50), mel(RATE / 2), MELS + 2)
    hertz = 700 * (10 ** (points / 2595) - 1)
    bins = torch.linspace(0, RATE / 2, N_FFT // 2 + 1)
    up = (bins[None] - hertz[:-2, None]) / (hertz[1:-1] - hertz[:-2])[:, None]
    down = (hertz[2:, None] - bins[None]) / (hertz[2:] - hertz[1:-1])[:, None]
    return torch.minimum(up, down).clamp(min=0)


class Clips(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.filters, self.window = mel_filters(), torch.hann_window(N_FFT)
        t = torch.arange(LENGTH) / RATE
        self.labels = (torch.rand(n, generator=g) < 0.12).float()
        start = 300 + 900 * torch.rand(n, 1, generator=g)
        sweep = torch.where(self.labels[:, None] == 1, 400.0, -400.0)
        phase = 2 * math.pi * (start * t + sweep * t ** 2)
        self.waves = torch.sin(phase) + 0.8 * torch.randn(n, LENGTH, generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        spectrum = torch.stft(self.waves[i], N_FFT, HOP, window=self.window, return_complex=True).abs() ** 2
        return torch.log(self.filters @ spectrum + 1e-3), self.labels[i]


class KeywordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(MELS)
        self.conv = nn.Sequential(nn.Conv1d(MELS, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 32, 3, padding=1), nn.ReLU())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        h = self.conv(self.norm(x))
        return self.out(torch.cat([h.mean(2), h.amax(2)], dim=1)).squeeze(1)


def focal_loss(logits, targets, gamma=2.0, alpha=0.6):
    p = torch.sigmoid(logits)
    bce = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    weight = torch.where(targets == 1, alpha * (1 - p) ** gamma, (1 - alpha) * p ** gamma)
    return (weight * bce).sum() / len(targets)


def main():
    torch.manual_seed(1)
    train, test = Clips(400, 0), Clips(200, 1)
    weights = torch.where(train.labels == 1, 4.0, 1.0)
    sampler = WeightedRandomSampler(weights.tolist(), num_samples=len(train))
    loader, test_loader = DataLoader(train, 40, sampler=sampler), DataLoader(test, 100)
    model = KeywordNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = focal_loss(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = torch.cat([model(x) for x, _ in test_loader])
        positive, negative = scores[test.labels == 1], scores[test.labels == 0]
        auc = (positive[:, None] > negative[None]).float().mean()
        print(f"epoch {epoch} loss {loss.item():.4f} auc {auc:.3f}")


main()
