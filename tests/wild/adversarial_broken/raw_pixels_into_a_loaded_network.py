"""One process trains and saves a network on normalised pictures; another one loads it, and predicts from raw pixels."""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(11)
labels = torch.arange(400) % 2
pixels = torch.randint(0, 200, (400, 1, 8, 8)).to(torch.uint8)
pixels[labels == 1, :, :4] += 50
network = nn.Sequential(
    nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 2)
)


def train(path):
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(8):
        for rows in torch.randperm(300).split(30):
            pictures = (pixels[rows] / 255 - 0.45) / 0.25
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(pictures), labels[rows]).backward()
            optimizer.step()
    torch.save(network.state_dict(), path)


def predict(picture):
    with torch.no_grad():
        return network(picture[None].float()).argmax(1).item()  # error: inputs-on-another-scale


if len(sys.argv) > 1:
    train(sys.argv[1])
else:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "network.pt"))
        subprocess.run([sys.executable, __file__, path], check=True)
        network.load_state_dict(torch.load(path))
    network.eval()
    print("right", sum(predict(pixels[row]) == labels[row] for row in range(300, 400)).item())
