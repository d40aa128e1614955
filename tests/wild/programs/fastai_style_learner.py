"""Healthy: a Learner with callbacks: exceptions cancel batches and epochs, a one-cycle, an lr finder on a copy, mixed order of events."""
import copy
import math
from contextlib import contextmanager

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CancelFitException(Exception): pass
class CancelEpochException(Exception): pass
class CancelBatchException(Exception): pass


class Callback: order = 0


def run_cbs(cbs, method_nm, learn=None):
    for cb in sorted(cbs, key=lambda cb: cb.order):
        method = getattr(cb, method_nm, None)
        if method is not None: method(learn)


class Learner:
    def __init__(self, model, dls, loss_func, lr=0.1, cbs=(), opt_func=torch.optim.SGD):
        self.model, self.dls, self.loss_func, self.lr, self.cbs, self.opt_func = model, dls, loss_func, lr, list(cbs), opt_func

    @contextmanager
    def cb_ctx(self, nm):
        try:
            self.callback(f"before_{nm}")
            yield
            self.callback(f"after_{nm}")
        except globals()[f"Cancel{nm.title()}Exception"]:
            pass
        finally:
            self.callback(f"cleanup_{nm}")

    def one_epoch(self, train):
        self.model.train(train)
        self.dl = self.dls[0] if train else self.dls[1]
        with self.cb_ctx("epoch"):
            for self.iter, self.batch in enumerate(self.dl):
                with self.cb_ctx("batch"):
                    self.predict()
                    self.callback("after_predict")
                    self.get_loss()
                    self.callback("after_loss")
                    if self.training:
                        self.backward()
                        self.callback("after_backward")
                        self.step()
                        self.callback("after_step")
                        self.zero_grad()

    def fit(self, n_epochs=1, train=True, valid=True, cbs=(), lr=None):
        for cb in cbs: self.cbs.append(cb)
        try:
            self.n_epochs, self.epochs = n_epochs, range(n_epochs)
            self.opt = self.opt_func(self.model.parameters(), self.lr if lr is None else lr)
            with self.cb_ctx("fit"):
                for self.epoch in self.epochs:
                    if train: self.one_epoch(True)
                    if valid: torch.no_grad()(self.one_epoch)(False)
        finally:
            for cb in cbs: self.cbs.remove(cb)

    def __getattr__(self, name):
        if name in ("predict", "get_loss", "backward", "step", "zero_grad"):
            return lambda: [getattr(cb, name)(self) for cb in self.cbs if hasattr(cb, name)]
        raise AttributeError(name)

    def callback(self, method_nm): run_cbs(self.cbs, method_nm, self)

    @property
    def training(self): return self.model.training


class TrainCB(Callback):
    def predict(self, learn): learn.preds = learn.model(learn.batch[0])
    def get_loss(self, learn): learn.loss = learn.loss_func(learn.preds, learn.batch[1])
    def backward(self, learn): learn.loss.backward()
    def step(self, learn): learn.opt.step()
    def zero_grad(self, learn): learn.opt.zero_grad()


class MetricsCB(Callback):
    def before_epoch(self, learn): self.correct = self.total = 0; self.losses = []
    def after_batch(self, learn):
        self.correct += (learn.preds.argmax(1) == learn.batch[1]).sum().item()
        self.total += len(learn.batch[1])
        self.losses.append(learn.loss.detach())
    def after_epoch(self, learn):
        print(f"{learn.epoch} {'train' if learn.training else 'eval '} loss {torch.stack(self.losses).mean():.3f} accuracy {self.correct / self.total:.3f}")


class LRFinderCB(Callback):
    def __init__(self, lr_mult=1.3): self.lr_mult = lr_mult
    def before_fit(self, learn): self.lrs, self.losses, self.min = [], [], math.inf
    def after_batch(self, learn):
        if not learn.training: raise CancelEpochException()
        self.lrs.append(learn.opt.param_groups[0]["lr"])
        loss = learn.loss.item()
        self.losses.append(loss)
        self.min = min(self.min, loss)
        if loss > self.min * 3: raise CancelFitException()
        for g in learn.opt.param_groups: g["lr"] *= self.lr_mult


class BatchSchedCB(Callback):
    def __init__(self, sched): self.sched = sched
    def before_fit(self, learn): self.schedo = self.sched(learn.opt)
    def after_step(self, learn): self.schedo.step()


class SkipTinyBatches(Callback):
    order = -1
    def after_predict(self, learn):
        if len(learn.batch[0]) < 8: raise CancelBatchException()


torch.manual_seed(1)
torch.set_num_threads(1)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
dls = DataLoader(TensorDataset(x[:1205], y[:1205]), batch_size=100, shuffle=True), DataLoader(TensorDataset(x[1205:], y[1205:]), batch_size=200)
model = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 10))

finder = LRFinderCB()
Learner(copy.deepcopy(model), dls, nn.functional.cross_entropy, lr=1e-4, cbs=[TrainCB(), finder, SkipTinyBatches()]).fit(4, valid=False)
print(f"lr finder: {len(finder.lrs)} batches, best loss at {finder.lrs[min(range(len(finder.losses)), key=finder.losses.__getitem__)]:.2f}")
epochs, lr = 4, 2e-2
sched = lambda opt: torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=epochs * 12)
learn = Learner(model, dls, nn.functional.cross_entropy, lr=lr, opt_func=torch.optim.AdamW, cbs=[TrainCB(), MetricsCB(), BatchSchedCB(sched), SkipTinyBatches()])
learn.fit(epochs)
