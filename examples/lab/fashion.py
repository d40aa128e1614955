"""FashionMNIST with a perceptron and with convolutions, trained by the same loop, then tested on moved images.

    python fashion.py --data path/to/data

Data: fashion-mnist/*.gz, from https://github.com/zalandoresearch/fashion-mnist (data/fashion), below --data.
"""

import argparse
import os
from pathlib import Path

import torch
from torch import nn

import truestep as ts

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")))
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--images", type=int, default=10_000, help="of the 60,000 for training")
parser.add_argument("--moved", type=int, default=2, help="pixels by which images are moved in the second test")
args = parser.parse_args()

folder = args.data / "fashion-mnist"
images = ts.data.idx(folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz")
test_images = ts.data.idx(folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz")
few, _ = images.split(args.images / len(images), seed=args.seed)


def perceptron():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


def train(network):
    """Return the accuracy on the images of the test set, and on the same images moved to the right."""
    run = ts.Run(max_epochs=args.epochs, seed=args.seed)
    loader = run.loader(few, batch_size=64, shuffle=True)
    tests = run.loader(test_images, batch_size=1000)
    model = run.model(network())
    optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=2e-3))
    run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.05))
    for _ in run.epochs():
        for x, y in run.train(loader, model):
            run.step(nn.functional.cross_entropy(model(x), y))

    with run.evaluate(model):
        accuracy, moved = run.mean("accuracy"), run.mean("moved")
        for x, y in run.batches(tests):
            accuracy.update(model(x).argmax(dim=1) == y)
            moved.update(model(x.roll(args.moved, dims=3)).argmax(dim=1) == y)
    return sum(p.numel() for p in model.parameters()), float(accuracy), float(moved)


for network in (perceptron, convolutions):
    parameters, accuracy, moved = train(network)
    print(f"{network.__name__:12} {parameters:7,} parameters: {accuracy:.1%}, moved images {moved:.1%}")
