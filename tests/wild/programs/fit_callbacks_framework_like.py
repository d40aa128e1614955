"""A small framework: Learner.fit with events, callbacks for scheduling, clipping, metrics and checkpoints, cancel exceptions, two loaders."""
import io

import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset


class CancelFit(Exception):
    """Ends the training early."""


class Callback:
    order = 0

    def __call__(self, event, learner):
        method = getattr(self, event, None)
        if method is not None:
            method(learner)


class Metrics(Callback):
    def before_epoch(self, learner):
        self.sums = {True: [0.0, 0, 0], False: [0.0, 0, 0]}

    def after_batch(self, learner):
        sums = self.sums[learner.training]
        sums[0] += learner.loss.item() * len(learner.yb)
        sums[1] += ((learner.pred > 0).float() == learner.yb).sum().item()
        sums[2] += len(learner.yb)

    def after_epoch(self, learner):
        learner.record = {k: (round(s / n, 4), round(c / n, 4)) for k, (s, c, n) in (("train", self.sums[True]), ("valid", self.sums[False]))}
        print(learner.epoch, learner.record)


class OneCycle(Callback):
    def before_fit(self, learner):
        total = learner.epochs * len(learner.dls[0])
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(learner.opt, learner.lr, total_steps=total)

    def after_step(self, learner):
        self.schedule.step()


class ClipGradients(Callback):
    def after_backward(self, learner):
        nn.utils.clip_grad_norm_(learner.model.parameters(), 1.0)


class SaveBest(Callback):
    order = 10
    best, buffer = float("inf"), None

    def after_epoch(self, learner):
        loss = learner.record["valid"][0]
        if loss < self.best:
            self.best, self.buffer = loss, io.BytesIO()
            torch.save(learner.model.state_dict(), self.buffer)
        if learner.record["valid"][1] > 0.995:
            raise CancelFit

    def after_fit(self, learner):
        self.buffer.seek(0)
        learner.model.load_state_dict(torch.load(self.buffer))


class Learner:
    def __init__(self, model, dls, loss_func, lr, callbacks):
        self.model, self.dls, self.loss_func, self.lr = model, dls, loss_func, lr
        self.callbacks = sorted(callbacks, key=lambda cb: cb.order)

    def fire(self, event):
        for callback in self.callbacks:
            callback(event, self)

    def one_batch(self):
        self.pred = self.model(self.xb).squeeze(1)
        self.loss = self.loss_func(self.pred, self.yb)
        if self.training:
            self.loss.backward()
            self.fire("after_backward")
            self.opt.step()
            self.fire("after_step")
            self.opt.zero_grad()
        self.fire("after_batch")

    def one_epoch(self, training):
        self.training = training
        self.model.train(training)
        with torch.set_grad_enabled(training):
            for self.xb, self.yb in self.dls[0 if training else 1]:
                self.one_batch()

    def fit(self, epochs):
        self.epochs, self.opt = epochs, torch.optim.AdamW(self.model.parameters(), lr=self.lr)
        self.fire("before_fit")
        try:
            for self.epoch in range(epochs):
                self.fire("before_epoch")
                self.one_epoch(True)
                self.one_epoch(False)
                self.fire("after_epoch")
        except CancelFit:
            pass
        self.fire("after_fit")


torch.manual_seed(0)
x, y = make_moons(800, noise=0.15, random_state=0)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
dls = DataLoader(TensorDataset(x[:600], y[:600]), 50, shuffle=True), DataLoader(TensorDataset(x[600:], y[600:]), 100)
model = nn.Sequential(nn.Linear(2, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 1))
Learner(model, dls, nn.BCEWithLogitsLoss(), 2e-2, [SaveBest(), Metrics(), OneCycle(), ClipGradients()]).fit(8)
