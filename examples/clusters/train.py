"""Classify the digits of scikit-learn on any number of processes; the same command goes on with a stopped run.

torchrun --nproc-per-node 2 train.py --out runs/lab
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import truestep as ts

settings = ts.Settings.from_flags(max_epochs=40, resume="auto", rank_timeout=120.0)
run = ts.Run(settings)

pixels, labels = load_digits(return_X_y=True)
digits = ts.data.tensors(torch.as_tensor(pixels, dtype=torch.float32) / 16, torch.as_tensor(labels))
train_set, held_out = digits.split(0.75, seed=0)
train = run.loader(train_set, batch_size=64 // run.world_size, shuffle=True)  # 64 on all ranks together
test = run.loader(held_out, batch_size=512)

model = run.model(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 10)))
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=3e-3))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.1))
criterion = nn.CrossEntropyLoss()

for _ in run.epochs():
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
