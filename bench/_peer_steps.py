"""The training of `_steps.py` in other frameworks, each written as in its documentation.

`..._off` uses no features; `..._on` clips, moves a schedule every step, and logs the loss every 50th step.
"""

from __future__ import annotations

import json
from typing import Any

import lightning
import skorch
import torch
from _steps import LOG_EVERY, MAX_NORM, Loop, Task, net, rising, sgd
from accelerate import Accelerator
from accelerate.tracking import GeneralTracker
from ignite.engine import Engine, Events
from ignite.handlers import LRScheduler
from lightning.fabric import Fabric
from lightning.fabric.loggers import CSVLogger as FabricCSV
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from transformers import Trainer, TrainingArguments

mse = nn.functional.mse_loss


def fabric_off(task: Task) -> nn.Module:
    fabric = Fabric(accelerator="cpu", devices=1)
    plain = net()
    model, optimizer = fabric.setup(plain, sgd(plain))
    for x, y in task.ready():
        optimizer.zero_grad()
        loss = mse(model(x), y)
        fabric.backward(loss)
        optimizer.step()
    return plain


def fabric_on(task: Task) -> nn.Module:
    fabric = Fabric(accelerator="cpu", devices=1, loggers=FabricCSV(task.folder))
    plain = net()
    model, optimizer = fabric.setup(plain, sgd(plain))
    scheduler = rising(optimizer.optimizer)
    for step, (x, y) in enumerate(task.ready()):
        optimizer.zero_grad()
        loss = mse(model(x), y)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=MAX_NORM)
        optimizer.step()
        scheduler.step()
        if step % LOG_EVERY == 0:
            fabric.log("loss", loss, step=step)
    return plain


def accelerate_off(task: Task) -> nn.Module:
    accelerator = Accelerator(cpu=True)
    plain = net()
    model, optimizer = accelerator.prepare(plain, sgd(plain))
    for x, y in task.ready():
        optimizer.zero_grad()
        loss = mse(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
    return plain


def accelerate_accumulate(task: Task) -> nn.Module:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    plain = net()
    model, optimizer = accelerator.prepare(plain, sgd(plain))
    for x, y in task.ready():
        with accelerator.accumulate(model):
            loss = mse(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    return plain


class Lines(GeneralTracker):
    """A tracker of Accelerate that writes JSON lines."""

    name = "lines"
    requires_logging_directory = False

    def __init__(self, path: Any) -> None:
        super().__init__()
        self.path = path

    @property
    def tracker(self) -> Any:
        return self.path

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        pass

    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")


def accelerate_on(task: Task) -> nn.Module:
    accelerator = Accelerator(cpu=True, log_with=Lines(task.folder / "lines.jsonl"))
    accelerator.init_trackers("bench")
    plain = net()
    optimizer = sgd(plain)
    model, optimizer, scheduler = accelerator.prepare(plain, optimizer, rising(optimizer))
    for step, (x, y) in enumerate(task.ready()):
        optimizer.zero_grad()
        loss = mse(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        scheduler.step()
        if step % LOG_EVERY == 0:
            accelerator.log({"loss": loss.item()}, step=step)
    return plain


def ignite_off(task: Task) -> nn.Module:
    model = net()
    optimizer = sgd(model)

    def step(engine: Engine, batch: Any) -> torch.Tensor:
        x, y = batch
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    Engine(step).run(task.ready(), max_epochs=1)
    return model


def ignite_on(task: Task) -> nn.Module:
    model = net()
    optimizer = sgd(model)
    path = task.folder / "ignite.jsonl"

    def step(engine: Engine, batch: Any) -> torch.Tensor:
        x, y = batch
        optimizer.zero_grad()
        loss = mse(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        return loss.detach()

    engine = Engine(step)
    engine.add_event_handler(Events.ITERATION_STARTED, LRScheduler(rising(optimizer)))

    @engine.on(Events.ITERATION_COMPLETED(every=LOG_EVERY))
    def write(engine: Engine) -> None:
        with path.open("a") as file:
            file.write(json.dumps({"step": engine.state.iteration, "loss": engine.state.output.item()}) + "\n")

    engine.run(task.ready(), max_epochs=1)
    return model


class Module(lightning.LightningModule):
    """The model as Lightning expects it."""

    def __init__(self, *, on: bool) -> None:
        super().__init__()
        self.net, self.on = net(), on

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        x, y = batch
        loss = mse(self.net(x), y)
        if self.on:
            self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = sgd(self.net)
        if not self.on:
            return optimizer
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": rising(optimizer), "interval": "step"},
        }


def _lightning(task: Task, *, on: bool, **options: Any) -> nn.Module:
    module = Module(on=on)
    trainer = lightning.Trainer(accelerator="cpu", devices=1, max_epochs=1, default_root_dir=task.folder, **options)
    trainer.fit(module, task.ready())
    return module.net


def lightning_barebones(task: Task) -> nn.Module:
    return _lightning(task, on=False, barebones=True)


def lightning_default(task: Task) -> nn.Module:
    return _lightning(task, on=False)


def lightning_on(task: Task) -> nn.Module:
    return _lightning(
        task,
        on=True,
        gradient_clip_val=MAX_NORM,
        logger=CSVLogger(task.folder),
        log_every_n_steps=LOG_EVERY,
        enable_progress_bar=False,
        enable_checkpointing=False,
    )


def lightning_default_on(task: Task) -> nn.Module:
    return _lightning(task, on=True, gradient_clip_val=MAX_NORM, logger=CSVLogger(task.folder))


class Labelled(nn.Module):
    """The model as HF Trainer expects it: it computes its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": mse(self.net(x), labels)}


class ReadyTrainer(Trainer):
    """A Trainer with prepared batches."""

    ready: Any

    def get_train_dataloader(self) -> Any:
        return self.ready


def _trainer(task: Task, *, on: bool) -> nn.Module:
    model = Labelled()
    optimizer = sgd(model)
    arguments = TrainingArguments(
        output_dir=str(task.folder),
        use_cpu=True,
        max_steps=task.clock.steps,
        max_grad_norm=MAX_NORM if on else 0.0,
        lr_scheduler_type="constant",
        logging_strategy="steps" if on else "no",
        logging_steps=LOG_EVERY,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    trainer = ReadyTrainer(model, arguments, optimizers=(optimizer, rising(optimizer) if on else None))
    x, y = task.batch()
    trainer.ready = task.ready()
    trainer.ready.batch = {"x": x, "labels": y}
    trainer.train()
    return model.net


def trainer_off(task: Task) -> nn.Module:
    return _trainer(task, on=False)


def trainer_on(task: Task) -> nn.Module:
    return _trainer(task, on=True)


def skorch_off(task: Task) -> nn.Module:
    model = net()
    x, y = task.batch()
    learner = skorch.NeuralNet(
        model,
        nn.MSELoss,
        optimizer=torch.optim.SGD,
        lr=0.01,
        max_epochs=1,
        iterator_train=lambda data, **_: task.ready(),
        train_split=None,
        callbacks="disable",
        verbose=0,
    )
    learner.fit(x, y)
    return learner.module_


PEERS_OFF: dict[str, Loop] = {
    "Fabric": fabric_off,
    "Ignite": ignite_off,
    "Accelerate": accelerate_off,
    "Accelerate, accumulate()": accelerate_accumulate,
    "skorch": skorch_off,
    "Lightning, barebones": lightning_barebones,
    "Lightning, default": lightning_default,
    "HF Trainer": trainer_off,
}
PEERS_ON: dict[str, Loop] = {
    "Fabric": fabric_on,
    "Ignite": ignite_on,
    "Accelerate": accelerate_on,
    "Lightning, lean": lightning_on,
    "Lightning, default": lightning_default_on,
    "HF Trainer": trainer_on,
}
