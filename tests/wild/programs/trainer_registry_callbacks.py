"""A registry-driven trainer with callbacks, an abstract base class, hooks by name, gradient accumulation, EMA and config from argparse."""
import abc
import argparse
import copy
import math
from types import SimpleNamespace

import torch
import torch.nn as nn

REGISTRY = {}


def register(name):
    def deco(cls):
        REGISTRY[name] = cls
        return cls

    return deco


class Callback:
    def __getattr__(self, name):
        if name.startswith("on_"):
            return lambda trainer: None
        raise AttributeError(name)


@register("ema")
class EMA(Callback):
    def __init__(self, decay=0.95):
        self.decay, self.shadow = decay, None

    def on_step(self, trainer):
        state = trainer.model.state_dict()
        if self.shadow is None:
            self.shadow = {k: v.detach().clone() for k, v in state.items()}
        for k, v in state.items():
            if v.dtype.is_floating_point:
                self.shadow[k].lerp_(v, 1 - self.decay)
            else:
                self.shadow[k].copy_(v)

    def on_validation_start(self, trainer):
        self.backup = copy.deepcopy(trainer.model.state_dict())
        trainer.model.load_state_dict(self.shadow)

    def on_validation_end(self, trainer):
        trainer.model.load_state_dict(self.backup)


@register("log")
class Log(Callback):
    def on_validation_end(self, trainer):
        print(f"epoch {trainer.epoch} train {trainer.meter / trainer.seen:.4f} valid {trainer.score:.4f} lr {trainer.opt.param_groups[0]['lr']:.4f}")


class BaseTrainer(abc.ABC):
    def __init__(self, cfg, callbacks):
        self.cfg, self.callbacks, self.epoch = cfg, [REGISTRY[c]() for c in callbacks], 0

    def fire(self, name):
        for c in self.callbacks:
            getattr(c, "on_" + name)(self)

    @abc.abstractmethod
    def loss(self, batch): ...

    def fit(self, batches, valid):
        n = 0
        for self.epoch in range(self.cfg.epochs):
            self.model.train()
            self.meter = self.seen = 0
            for k, batch in enumerate(batches()):
                last = k == self.cfg.batches - 1
                window = self.cfg.accumulate if k < self.cfg.batches - self.cfg.batches % self.cfg.accumulate else self.cfg.batches % self.cfg.accumulate
                loss = self.loss(batch)
                (loss / window).backward()
                self.meter, self.seen = self.meter + loss.item(), self.seen + 1
                if (k + 1) % self.cfg.accumulate == 0 or last:
                    for g in self.opt.param_groups:
                        g["lr"] = self.cfg.lr * 0.5 * (1 + math.cos(math.pi * n / self.cfg.total))
                    nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                    self.opt.step()
                    self.opt.zero_grad()
                    n += 1
                    self.fire("step")
            self.fire("validation_start")
            self.model.eval()
            with torch.no_grad():
                self.score = self.loss(valid).item()
            self.fire("validation_end")


class Regressor(BaseTrainer):
    def __init__(self, cfg, callbacks):
        super().__init__(cfg, callbacks)
        self.model = nn.Sequential(nn.Linear(3, 32), nn.BatchNorm1d(32), nn.CELU(), nn.Linear(32, 1), nn.Flatten(0))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg.lr, momentum=0.9, weight_decay=1e-4)

    def loss(self, batch):
        return nn.functional.smooth_l1_loss(self.model(batch.x), batch.y)


def make(n):
    x = torch.randn(n, 3)
    return SimpleNamespace(x=x, y=(2 * x[:, 0]).sin() + x[:, 1] * x[:, 2])


parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.2)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batches", type=int, default=14)
parser.add_argument("--accumulate", type=int, default=4)
cfg = parser.parse_args([])
cfg.total = cfg.epochs * -(-cfg.batches // cfg.accumulate)
torch.manual_seed(0)
Regressor(cfg, ["ema", "log"]).fit(lambda: (make(32) for _ in range(cfg.batches)), make(300))
