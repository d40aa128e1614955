"""Classify handwritten digits: 1,797 images of 8 x 8 pixels that come with scikit-learn, a quarter held out.

    python train.py --max-epochs 20
    python train.py --predict digits.npy
    python train.py --resume auto --export onnx

A file to predict has images of 8 x 8 numbers from 0 to 16: an array of numpy, or 64 numbers on each line of a .csv.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from sklearn.datasets import load_digits
from torch import nn

import truestep as ts


@dataclass
class Settings(ts.Settings):
    """Settings of the command line."""

    batch_size: int = 64
    """Images in a batch."""
    lr: float = 3e-3
    """Peak learning rate."""
    predict: tuple[Path, ...] = ()
    """Files to classify with the best checkpoint of the run in `out`, without training."""
    export: Literal["pt2", "onnx", "aoti"] | None = None
    """Format to export the best checkpoint to at the end; `--resume auto` goes straight there after a training."""


def net() -> nn.Sequential:
    """Return two convolutions, a pooling, and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * 4 * 4, 10),
    )


settings = Settings.from_flags(out="runs/digits", max_epochs=20)
if settings.predict:
    for answer in ts.Trained(settings.out).predict(net(), settings.predict):
        print(answer)
    raise SystemExit
run = ts.Run(settings)

# data: images of shape (1, 8, 8) between 0 and 1, labels from 0 to 9
pixels, labels = load_digits(return_X_y=True)
images = torch.as_tensor(pixels, dtype=torch.float32).view(-1, 1, 8, 8)
digits = ts.data.tensors(images, torch.as_tensor(labels), std=16, classes="0123456789")
train_set, held_out = digits.split(0.75, seed=0)
train = run.loader(train_set, settings.batch_size, shuffle=True)
test = run.loader(held_out, batch_size=512)

# model, optimizer, schedule, loss
model = run.model(net())
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=settings.lr))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.1))
criterion = nn.CrossEntropyLoss()

for epoch in run.epochs():
    for x, y in run.train(train, model):
        with run.autocast():
            loss = criterion(model(x), y)
        run.step(loss)
        run.log({"loss": loss})

    with run.evaluate(model):
        accuracy = run.mean("accuracy")
        for x, y in run.batches(test):
            accuracy.update(model(x).argmax(dim=1) == y)
    run.log({"accuracy": accuracy})
    run.save(metric=accuracy, mode="max")
    print(f"epoch {epoch + 1}: held-out accuracy {accuracy:.2%}")

if settings.export:
    run.export(model, test, to=settings.export, best=True)
