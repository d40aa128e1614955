"""Classify the points of a spiral with three arms, and draw how the network learns to separate them.

    python train.py --max-epochs 60
    python train.py --predict points.csv
    python train.py --resume auto --export onnx

Writes spiral.gif into the run's folder, with a frame for every second epoch. Needs no data, but Pillow.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from PIL import Image, ImageDraw
from torch import nn

import truestep as ts


@dataclass
class Settings(ts.Settings):
    """Settings of the command line."""

    points: int = 2000
    """Number of training points, all arms together; as many more are held out."""
    width: int = 64
    """Units in each of the two hidden layers."""
    lr: float = 5e-3
    """Peak learning rate."""
    predict: tuple[Path, ...] = ()
    """Files with the two numbers of a point on each line, to classify with the best checkpoint in `out`."""
    export: Literal["pt2", "onnx", "aoti"] | None = None
    """Format to export the best checkpoint to at the end; `--resume auto` goes straight there after a training."""


def net(width: int) -> nn.Sequential:
    """Return a network of two hidden layers."""
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))


settings = Settings.from_flags(out="runs/spiral", max_epochs=60)
if settings.predict:
    trained = ts.Trained(settings.out)
    for answer in trained.predict(net(trained.settings["width"]), settings.predict):
        print(answer)
    raise SystemExit
run = ts.Run(settings)


def spiral(points: int, seed: int):
    """Return points of shape (points, 2) between -1 and 1, and their arms of shape (points,): 0, 1 or 2."""
    chance = torch.Generator().manual_seed(seed)
    arm = torch.arange(points) % 3
    radius = torch.rand(points, generator=chance)
    angle = 2 * math.pi * arm / 3 + 8 * radius + 0.3 * torch.randn(points, generator=chance)
    return radius[:, None] * torch.stack((angle.cos(), angle.sin()), dim=1), arm


arms = ("first arm", "second arm", "third arm")
train_set, held_out = (ts.data.tensors(*spiral(settings.points, seed), classes=arms) for seed in (1, 2))
train = run.loader(train_set, batch_size=64, shuffle=True)
test = run.loader(held_out, batch_size=1000)

model = run.model(net(settings.width))
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=settings.lr))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.05))
criterion = nn.CrossEntropyLoss()

SIZE = 320
COLOURS = torch.tensor([[86, 156, 214], [235, 140, 60], [110, 180, 90]], dtype=torch.float32)


def picture(caption: str) -> Image.Image:
    """Return an image of the predicted arm at each place, paler with less confidence, with training points on top."""
    across = torch.linspace(-1.1, 1.1, SIZE)
    places = torch.cartesian_prod(across.flip(0), across).flip(1)
    sure = model(places.to(run.device)).softmax(dim=1).cpu()
    shades = 255 - (255 - sure @ COLOURS) * 0.6 * sure.amax(dim=1, keepdim=True)
    image = Image.fromarray(shades.view(SIZE, SIZE, 3).byte().numpy())
    pen = ImageDraw.Draw(image)
    for (x, y), arm in zip(*(part[::4].tolist() for part in train_set.tensors), strict=True):
        column, row = ((1.1 + x) / 2.2 * SIZE, (1.1 - y) / 2.2 * SIZE)
        colour = tuple(int(0.75 * shade) for shade in COLOURS[arm])
        pen.ellipse((column - 2, row - 2, column + 2, row + 2), fill=colour)
    pen.rectangle((0, 0, SIZE, 25), fill="white")
    pen.text((8, 5), caption, fill=(60, 60, 60), font_size=14)
    return image


frames = []
for epoch in run.epochs():
    for x, y in run.train(train, model):
        loss = criterion(model(x), y)
        run.step(loss)
        run.log({"loss": loss})

    with run.evaluate(model):
        accuracy = run.mean("accuracy")
        for x, y in run.batches(test):
            accuracy.update(model(x).argmax(dim=1) == y)
        caption = f"epoch {epoch + 1}: {accuracy:.1%} of the held-out points"
        if epoch % 2 == 0:
            frames.append(picture(caption))
    run.log({"accuracy": accuracy})
    run.save(metric=accuracy, mode="max")
    print(caption)

if frames and settings.out is not None:
    times = [120] * (len(frames) - 1) + [2000]
    frames[0].save(Path(settings.out, "spiral.gif"), save_all=True, append_images=frames[1:], duration=times, loop=0)

if settings.export:
    run.export(model, test, to=settings.export, best=True)
