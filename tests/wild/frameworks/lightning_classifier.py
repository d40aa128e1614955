"""Healthy: Lightning with dropout, a schedule per step, clipping, early stopping, a saved best model, torchmetrics and a test."""
import logging
import tempfile
import warnings

import lightning as L
import torch
import torchmetrics
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Moons(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        generator = torch.Generator().manual_seed(0)
        angle = torch.rand(600, generator=generator) * torch.pi
        label = torch.arange(600) % 2
        x = torch.stack([angle.cos() + label, angle.sin() * (1 - 2 * label) + 0.5 * label], 1)
        data = TensorDataset(x + 0.1 * torch.randn(600, 2, generator=generator), label)
        self.train, self.val, self.test = random_split(data, [400, 100, 100], generator)

    def train_dataloader(self):
        return DataLoader(self.train, self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test, self.batch_size)


class Classifier(L.LightningModule):
    def __init__(self, hidden=32, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 2)
        )
        self.criterion = nn.CrossEntropyLoss()
        self.accuracy = torchmetrics.Accuracy("multiclass", num_classes=2)

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", self.criterion(logits, y), prog_bar=True)
        self.log("val_acc", self.accuracy(logits, y))

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_acc", self.accuracy(self(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=1e-2)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


L.seed_everything(7, verbose=False)
with tempfile.TemporaryDirectory() as folder:
    best = ModelCheckpoint(monitor="val_loss", save_last=True)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=6,
        gradient_clip_val=1.0,
        callbacks=[best, EarlyStopping("val_loss", patience=4), LearningRateMonitor("step")],
        logger=CSVLogger(folder),
        log_every_n_steps=5,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = Moons()
    model = Classifier()
    trainer.fit(model, data)
    score = trainer.test(model, data, ckpt_path="best", verbose=False)[0]["test_acc"]
print(f"test accuracy {score:.2f} after {trainer.global_step} steps")
