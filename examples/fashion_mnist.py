"""Train a small convolutional network on FashionMNIST: 55,000 images of clothes, 5,000 to validate, 10,000 to test.

python examples/fashion_mnist.py --data data/fashion-mnist --epochs 4
"""

import argparse
import os
from pathlib import Path

import torch
from torch import nn

import truestep as ts

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data"), "fashion-mnist"))
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--steps", type=int, help="stop after so many steps")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", default="runs/fashion-mnist", help="where checkpoints and metrics go")
parser.add_argument("--resume", help='"auto" goes on with the run in --out')
args = parser.parse_args()

run = ts.Run(out=args.out, resume=args.resume, seed=args.seed, max_epochs=args.epochs, max_steps=args.steps)


def mirror(x, y):
    """Flip half of the images of a batch from left to right."""
    return torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5, x.flip(-1), x), y


normal = {"mean": 0.2860, "std": 0.3530}
images = ts.data.idx(args.data / "train-images", args.data / "train-labels", **normal)
train_set, val_set = images.split(55_000, seed=0)
train = run.loader(train_set, batch_size=128, shuffle=True, transform=mirror)
val = run.loader(val_set, batch_size=500)
test = run.loader(ts.data.idx(args.data / "t10k-images", args.data / "t10k-labels", **normal), batch_size=500)


class Net(nn.Sequential):
    """Two convolutions, each with a pooling, and two linear layers."""

    def __init__(self) -> None:
        super().__init__(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.25)),
            nn.Linear(128, 10),
        )


model = run.model(Net())
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=4e-3, fused=True))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.2))
criterion = nn.CrossEntropyLoss()


def accuracy(loader):
    """Return the part of a loader's images that the model names correctly."""
    with run.evaluate(model):
        right = sum((model(x).argmax(dim=1) == y).sum().item() for x, y in run.batches(loader))
    return right / len(loader.dataset)


for epoch in run.epochs():
    for x, y in run.train(train, model):
        with run.autocast():
            loss = criterion(model(x), y)
        run.step(loss)
        run.log({"loss": loss})
    val_accuracy = accuracy(val)
    run.log({"val_accuracy": val_accuracy})
    run.save(metric=val_accuracy, mode="max")
    print(f"epoch {epoch + 1}: validation accuracy {val_accuracy:.2%}")
print(f"test accuracy {accuracy(test):.2%}")
