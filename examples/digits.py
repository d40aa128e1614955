"""Train a small convolutional network on scikit-learn's digits: 1,797 images of 8 x 8 pixels, a quarter held out.

python examples/digits.py --epochs 20
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

import truestep as ts

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", default="runs/digits", help="where checkpoints and metrics go")
parser.add_argument("--resume", help='"auto" goes on with the run in --out')
args = parser.parse_args()

run = ts.Run(out=args.out, resume=args.resume, seed=args.seed, max_epochs=args.epochs)

pixels, labels = load_digits(return_X_y=True)
images = torch.as_tensor(pixels, dtype=torch.float32).view(-1, 1, 8, 8) / 16
digits = ts.data.tensors(images, torch.as_tensor(labels), classes="0123456789")
train_set, held_out = digits.split(0.75, seed=0)
train = run.loader(train_set, batch_size=64, shuffle=True)
test = run.loader(held_out, batch_size=512)

model = run.model(
    nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(64 * 4 * 4, 10),
    )
)
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=3e-3))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.1))
criterion = nn.CrossEntropyLoss()

for epoch in run.epochs():
    for x, y in run.train(train, model):
        loss = criterion(model(x), y)
        run.step(loss)
        run.log({"loss": loss})
    with run.evaluate(model):
        right = sum((model(x).argmax(dim=1) == y).sum().item() for x, y in run.batches(test))
    accuracy = right / len(held_out)
    run.log({"accuracy": accuracy})
    run.save(metric=accuracy, mode="max")
    print(f"epoch {epoch + 1:2d}: held-out accuracy {accuracy:.2%}")
