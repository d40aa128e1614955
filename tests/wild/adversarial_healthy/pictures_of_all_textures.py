"""Inputs of convolutions that are rough, periodic or alike in their channels, each in the right order of its axes."""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
N, SIZE = 32, 24
axis = torch.arange(float(SIZE))
smooth = F.avg_pool2d(torch.randn(N, 3, SIZE + 8, SIZE + 8), 9, 1) * 9
waves = torch.sin(axis * (0.3 + 2.8 * torch.rand(N, 3, 1, 1)) + 6 * torch.rand(N, 3, 1, 1))
slanted = torch.sin((axis + axis.view(-1, 1)) * (0.3 + 2.8 * torch.rand(N, 3, 1, 1)))
steps = torch.randint(0, 8, (N, 1, 6, 6)).float().repeat_interleave(4, 2).repeat_interleave(4, 3)
mosaic = smooth.view(N, 3, 6, 4, 6, 4).permute(0, 1, 3, 5, 2, 4).flatten(3)
spots = torch.zeros(N, 3, SIZE, SIZE)
spots[torch.arange(N), :, torch.randint(0, SIZE, (N,)), torch.randint(0, SIZE, (N,))] = torch.rand(N, 3)
shuffled = smooth.flatten(2)[:, :, torch.randperm(SIZE * SIZE)].view(N, 3, SIZE, SIZE)
grid = torch.randint(0, 3, (N, SIZE, SIZE))
genes = F.one_hot(torch.randint(0, 4, (N, 48)), 4).float().transpose(1, 2)

pictures = {
    "noise": torch.randn(N, 3, SIZE, SIZE),
    "smooth": smooth,
    "flipped": smooth.flip(1).flip(3),
    "last": smooth.to(memory_format=torch.channels_last),
    "gray": smooth[:, :1].repeat(1, 3, 1, 1),
    "frames": torch.stack([smooth[:, 0].roll(i, 2) for i in range(4)], 1),
    "waves": waves + 0.1 * smooth,
    "slanted": slanted * smooth,
    "steps": steps * torch.tensor([1.0, 0.6, 0.2]).view(1, 3, 1, 1),
    "mosaic": F.pixel_unshuffle(smooth[:, :1], 2),
    "patches": mosaic.reshape(N, 3, SIZE, SIZE),
    "shuffled": shuffled,
    "spots": spots,
    "constant": torch.rand(N, 3, 1, 1).expand(N, 3, SIZE, SIZE),
    "masks": F.one_hot(grid, 3).permute(0, 3, 1, 2).float(),
    "flags": (torch.rand(N, 3, SIZE, SIZE) < 0.3).float(),
    "spectrum": torch.stft(torch.randn(N, 46 * 8), 46, 16, return_complex=True, window=torch.ones(46)).abs()[:, None]
    .repeat(1, 2, 1, 1) * torch.tensor([1.0, math.pi]).view(1, 2, 1, 1),
    "genes": genes,
}  # fmt: skip
labels = torch.randint(0, 2, (N,))
for given in pictures.values():
    conv, pool = (nn.Conv2d, nn.AdaptiveAvgPool2d) if given.dim() == 4 else (nn.Conv1d, nn.AdaptiveAvgPool1d)
    model = nn.Sequential(conv(given.shape[1], 8, 3), nn.ReLU(), pool(1), nn.Flatten(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        for chosen in torch.randperm(N).split(16):
            optimizer.zero_grad()
            F.cross_entropy(model(given[chosen]), labels[chosen]).backward()
            optimizer.step()
