"""Predict house prices: 20,640 districts of California in 1990, a fifth of them held out.

    python train.py --data data/housing/housing.csv --max-epochs 30
    python train.py --predict districts.csv
    python train.py --resume auto --export onnx

The table is that of chapter 2 of https://github.com/ageron/handson-ml3. For your own table, change "data" below.
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
    """The table, or the folder above housing/housing.csv."""
    batch_size: int = 128
    """Rows in a batch."""
    width: int = 256
    """Units in each of the two hidden layers."""
    lr: float = 3e-3
    """Peak learning rate."""
    predict: tuple[Path, ...] = ()
    """Tables with the columns of the training, to predict with the best checkpoint in `out`, without training."""
    export: Literal["pt2", "onnx", "aoti"] | None = None
    """Format to export the best checkpoint to at the end; `--resume auto` goes straight there after a training."""


def net(features: int, width: int) -> nn.Sequential:
    """Return a network of two hidden layers; its output is the price."""
    return nn.Sequential(
        nn.Linear(features, width),
        nn.SiLU(),
        nn.LayerNorm(width),
        nn.Linear(width, width),
        nn.SiLU(),
        nn.Linear(width, 1),
    )


DOLLARS = 100_000
settings = Settings.from_flags(out="runs/table", max_epochs=30, clip_norm=1.0)
if settings.predict:
    trained = ts.Trained(settings.out)
    model = net(len(trained.preparation.features), trained.settings["width"])
    for answer in trained.predict(model, settings.predict, outputs=lambda price: price * DOLLARS):
        print(answer)
    raise SystemExit
run = ts.Run(settings)

# data: 13 features of a district, each with mean 0 and standard deviation 1; prices in dollars
table = ts.data.csv(
    settings.data / "housing/housing.csv" if settings.data.is_dir() else settings.data,
    target="median_house_value",
    categorical={"ocean_proximity": "onehot"},
    missing={"total_bedrooms": "median"},
    standardize=True,
)
train_set, held_out = table.split(0.8, seed=0)
train = run.loader(train_set, settings.batch_size, shuffle=True)
test = run.loader(held_out, batch_size=1024)

model = run.model(net(len(table.features), settings.width))
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=settings.lr, fused=True))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.1))
criterion = nn.HuberLoss()

for epoch in run.epochs():
    for x, y in run.train(train, model):
        with run.autocast():
            loss = criterion(model(x), y / DOLLARS)
        run.step(loss)
        run.log({"loss": loss})

    with run.evaluate(model):
        squared_error, error = run.mean("squared_error"), run.mean("error")
        for x, y in run.batches(test):
            off = model(x) * DOLLARS - y
            squared_error.update(off.square())
            error.update(off.abs())
    rmse = float(squared_error) ** 0.5
    run.log({"rmse": rmse, "error": error})
    run.save(metric=rmse)
    print(f"epoch {epoch + 1}: held-out error {float(error):,.0f} dollars, root of the squared one {rmse:,.0f}")

if settings.export:
    run.export(model, test, to=settings.export, best=True)
