"""A conditional GAN: a network that draws digits on request, and a judge that reads them.

    python gan.py

Data: the digits of scikit-learn. Writes the drawings to gan.png, if --picture names such a file.
"""

import argparse
from pathlib import Path

import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=150)
parser.add_argument("--picture", type=Path)
args = parser.parse_args()

torch.manual_seed(args.seed)
NOISE = 16
pixels, labels = load_digits(return_X_y=True)
images, labels = torch.tensor(pixels, dtype=torch.float32) / 8 - 1, torch.tensor(labels)  # between -1 and 1
loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True, drop_last=True)


def network(inputs, outputs, slope, *last):
    layers = [nn.Linear(inputs, 128), nn.LeakyReLU(slope), nn.Linear(128, 128), nn.LeakyReLU(slope)]
    return nn.Sequential(*layers, nn.Linear(128, outputs), *last)


def one_hot(digits):
    return nn.functional.one_hot(digits, 10).float()


def draw(digits):
    """Return an image for each digit, from fresh noise."""
    return generator(torch.cat((torch.randn(len(digits), NOISE), one_hot(digits)), dim=1))


def believed(pictures, digits):
    """Return the score with which the discriminator holds pictures for real ones of these digits."""
    return discriminator(torch.cat((pictures, one_hot(digits)), dim=1)).squeeze(1)


def examine(name):
    """Print which share of a thousand drawings the judge reads as requested, and how much they differ."""
    digits = torch.arange(10).repeat_interleave(100)
    with torch.no_grad():
        drawn = draw(digits)
        read = (judge(drawn).argmax(dim=1) == digits).float().mean()
    spread = torch.stack([torch.pdist(drawn[digits == d]).mean() for d in range(10)]).mean()
    real = torch.stack([torch.pdist(images[labels == d]).mean() for d in range(10)]).mean()
    print(f"{name + ':':16} {read:6.1%} of the drawings read as requested, {spread / real:.0%} of the real variety")
    return drawn


judge = network(64, 10, 0.0)
optimizer = torch.optim.Adam(judge.parameters(), lr=2e-3)
for _ in range(15):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(judge(x), y).backward()
        optimizer.step()

generator, discriminator = network(NOISE + 10, 64, 0.2, nn.Tanh()), network(64 + 10, 1, 0.2)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=5e-4, betas=(0.5, 0.999))
examine("before training")
for _ in range(args.epochs):
    for x, y in loader:
        drawn = draw(y)

        optimizer_d.zero_grad()
        real, false = believed(x, y), believed(drawn.detach(), y)  # no gradient for the generator here
        (nn.functional.softplus(-real) + nn.functional.softplus(false)).mean().backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        nn.functional.softplus(-believed(drawn, y)).mean().backward()  # be held for real
        optimizer_g.step()
drawn = examine("after training")

if args.picture:
    tiles = nn.functional.pad(drawn.view(10, 100, 8, 8)[:, :16], (1, 1, 1, 1), value=-1.0)  # a row for each digit
    rows = tiles.transpose(1, 2).reshape(100, 160)
    image = Image.fromarray(((1 - rows) * 127.5).round().byte().numpy())
    image.resize((640, 400), Image.Resampling.NEAREST).save(args.picture)
