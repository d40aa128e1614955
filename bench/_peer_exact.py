"""The trainings of `_exact_tasks.py` in other frameworks, resumed according to their documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightning
import torch
from _exact_tasks import ACCUMULATE, BATCH, SAVED_AT, Net, Ones, Training, Weight, sgd
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from ignite.engine import DeterministicEngine, Engine, Events, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver
from ignite.utils import manual_seed
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments
from transformers import set_seed as transformers_seed

QUIET: dict[str, Any] = {
    "accelerator": "cpu",
    "devices": 1,
    "max_epochs": 1,
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def loader(training: Training, *, seed: int | None = None) -> DataLoader[Any]:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    workers = training.case.workers
    return DataLoader(training.samples(), batch_size=BATCH, shuffle=True, num_workers=workers, generator=generator)


# --- Lightning


class LightningWeight(lightning.LightningModule):
    """The one weight as Lightning expects it."""

    def __init__(self, model: Weight) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        return self.model(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1.0)


class LightningNet(lightning.LightningModule):
    """The net as Lightning expects it."""

    def __init__(self, model: Net) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        return self.model(*batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return sgd(self.model)


def lightning_window() -> float:
    model = Weight()
    trainer = lightning.Trainer(**QUIET, accumulate_grad_batches=ACCUMULATE, enable_checkpointing=False)
    trainer.fit(LightningWeight(model), DataLoader(Ones(), batch_size=1))
    return model.sum_of_updates


def lightning_resume(training: Training) -> Net:
    lightning.seed_everything(0, workers=True)
    model = training.net()
    saver = ModelCheckpoint(training.folder, filename="{step}", every_n_train_steps=SAVED_AT, save_top_k=-1)
    trainer = lightning.Trainer(**QUIET, callbacks=[saver])
    path = training.folder / f"step={SAVED_AT}.ckpt" if training.resumes else None
    trainer.fit(LightningNet(model), loader(training), ckpt_path=path)
    return model


# --- Accelerate


def accelerate_window() -> float:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATE)
    plain = Weight()
    model, optimizer, batches = accelerator.prepare(
        plain, torch.optim.SGD(plain.parameters(), lr=1.0), DataLoader(Ones(), batch_size=1)
    )
    for x in batches:
        with accelerator.accumulate(model):
            accelerator.backward(model(x))
            optimizer.step()
            optimizer.zero_grad()
    return plain.sum_of_updates


def accelerate_resume(training: Training) -> Net:
    set_seed(0)
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
    plain = training.net()
    model, optimizer, batches = accelerator.prepare(plain, sgd(plain), loader(training))
    begin, path = 0, training.folder / "state"
    if training.resumes:
        accelerator.load_state(path)
        begin = SAVED_AT
    batches.set_epoch(0)
    for number, (x, y) in enumerate(accelerator.skip_first_batches(batches, begin), begin + 1):
        optimizer.zero_grad()
        accelerator.backward(model(x, y))
        optimizer.step()
        if number == SAVED_AT:
            accelerator.save_state(path)
    return plain


# --- Ignite


def ignite_window() -> float:
    model = Weight()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    trainer = create_supervised_trainer(
        model,
        optimizer,
        lambda loss, _: loss,
        prepare_batch=lambda x, **_: (x, x),
        gradient_accumulation_steps=ACCUMULATE,
    )
    trainer.run(DataLoader(Ones(), batch_size=1), max_epochs=1)
    return model.sum_of_updates


def _ignite_resume(training: Training, kind: type[Engine]) -> Net:
    manual_seed(0)
    model = training.net()
    optimizer = sgd(model)

    def step(engine: Engine, batch: Any) -> float:
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer = kind(step)
    parts: dict[str, Any] = {"trainer": trainer, "model": model, "optimizer": optimizer}
    saver = Checkpoint(parts, DiskSaver(training.folder, require_empty=False), filename_pattern="{name}.{ext}")
    trainer.add_event_handler(Events.ITERATION_COMPLETED(once=SAVED_AT), saver)
    if training.resumes:
        # given the path, Ignite refuses DeterministicEngine's own file: numpy's state is not weights
        Checkpoint.load_objects(parts, torch.load(training.folder / "checkpoint.pt", weights_only=False))
    trainer.run(loader(training), max_epochs=1)
    return model


def ignite_resume(training: Training) -> Net:
    return _ignite_resume(training, Engine)


def ignite_deterministic_resume(training: Training) -> Net:
    return _ignite_resume(training, DeterministicEngine)


# --- HF Trainer


class Losing(nn.Module):
    """A model as HF Trainer expects it: its output has a field `loss`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        return {"loss": self.model(x) if labels is None else self.model(x, labels)}


def _arguments(folder: Any, **options: Any) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        num_train_epochs=1,
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        logging_strategy="no",
        **options,
    )


def trainer_window() -> float:
    model = Weight()
    arguments = _arguments(
        "unused", per_device_train_batch_size=1, gradient_accumulation_steps=ACCUMULATE, save_strategy="no"
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    Trainer(Losing(model), arguments, train_dataset=Ones(named=True), optimizers=(optimizer, None)).train()
    return model.sum_of_updates


def trainer_resume(training: Training) -> Net:
    transformers_seed(0)
    model = training.net()
    arguments = _arguments(
        training.folder,
        seed=0,
        per_device_train_batch_size=BATCH,
        dataloader_num_workers=training.case.workers,
        save_strategy="steps",
        save_steps=SAVED_AT,
    )
    trainer = Trainer(
        Losing(model), arguments, train_dataset=training.samples(named=True), optimizers=(sgd(model), None)
    )
    trainer.train(resume_from_checkpoint=str(training.folder / f"checkpoint-{SAVED_AT}") if training.resumes else None)
    return model


NO_TORCHDATA = "not run: torchdata, which it needs, is not installed"
NOT_AN_EXTRA = "not run: not among the frameworks that are installed for tests"
Window = Callable[[], float]
Resume = Callable[[Training], Net]
PEERS: dict[str, tuple[Window | str, Resume | str]] = {
    "Lightning": (lightning_window, lightning_resume),
    "Accelerate": (accelerate_window, accelerate_resume),
    "Ignite": (ignite_window, ignite_resume),
    "Ignite, DeterministicEngine": ("as Ignite", ignite_deterministic_resume),
    "HF Trainer": (trainer_window, trainer_resume),
    "Fabric": ("the window is left to the caller", "the position in the data is left to the caller"),
    "skorch": ("accumulation is missing", "it saves between epochs only"),
    "Lightning, StatefulDataLoader": (NO_TORCHDATA, NO_TORCHDATA),
    "torchtnt, fastai": (NOT_AN_EXTRA, NOT_AN_EXTRA),
}
