"""Classify clothes: FashionMNIST, 55,000 images for training, 5,000 for validation, 10,000 for the test.

    python train.py --data data/fashion-mnist --max-epochs 4
    python train.py --predict shirt.png coat.png
    python train.py --resume auto --export onnx

Its four files are at https://github.com/zalandoresearch/fashion-mnist. For your own pictures, in one folder per
class, replace ts.data.idx(...) with ts.data.images("photos/train", size=28, channels=1).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn

import truestep as ts


@dataclass
class Settings(ts.Settings):
    """Settings of the command line."""

    data: Path = Path("data")
    """The folder with the four files, or the one above it."""
    batch_size: int = 128
    """Images in a batch."""
    lr: float = 4e-3
    """Peak learning rate."""
    predict: tuple[Path, ...] = ()
    """Pictures to classify with the best checkpoint of the run in `out`, without training."""
    export: Literal["pt2", "onnx", "aoti"] | None = None
    """Format to export the best checkpoint to at the end; `--resume auto` goes straight there after a training."""


class Net(nn.Sequential):
    """Two convolutions, each with a pooling, and two linear layers."""

    def __init__(self) -> None:
        super().__init__(
            *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.25)),
            nn.Linear(128, 10),
        )


settings = Settings.from_flags(out="runs/images", max_epochs=4)
if settings.predict:
    for answer in ts.Trained(settings.out).predict(Net(), settings.predict):
        print(answer)
    raise SystemExit
run = ts.Run(settings)


def mirror(x, y):
    """Flip half of the images of a batch from left to right."""
    return torch.where(torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5, x.flip(-1), x), y


# data: images of shape (1, 28, 28) with mean 0 and standard deviation 1, labels from 0 to 9
folder = settings.data / "fashion-mnist" if (settings.data / "fashion-mnist").is_dir() else settings.data
clothes = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]
read = {"mean": 0.2860, "std": 0.3530, "classes": clothes}
train_set, val_set = ts.data.idx(folder / "train-images", folder / "train-labels", **read).split(55_000, seed=0)
train = run.loader(train_set, settings.batch_size, shuffle=True, transform=mirror)
val = run.loader(val_set, batch_size=500)
test = run.loader(ts.data.idx(folder / "t10k-images", folder / "t10k-labels", **read), batch_size=500)


model = run.model(Net())
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=settings.lr, fused=True))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.2))
criterion = nn.CrossEntropyLoss()


def accuracy_on(loader):
    """Return the fraction of a loader's images that the model classifies correctly."""
    accuracy = run.mean("accuracy")
    with run.evaluate(model):
        for x, y in run.batches(loader):
            accuracy.update(model(x).argmax(dim=1) == y)
    return float(accuracy)


for epoch in run.epochs():
    for x, y in run.train(train, model):
        with run.autocast():
            loss = criterion(model(x), y)
        run.step(loss)
        run.log({"loss": loss})
    val_accuracy = accuracy_on(val)
    run.log({"val_accuracy": val_accuracy})
    run.save(metric=val_accuracy, mode="max")
    print(f"epoch {epoch + 1}: validation accuracy {val_accuracy:.2%}")
print(f"test accuracy {accuracy_on(test):.2%}")
if settings.export:
    run.export(model, test, to=settings.export, best=True)
