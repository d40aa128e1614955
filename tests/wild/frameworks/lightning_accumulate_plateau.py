"""Healthy: Lightning with accumulate_grad_batches, a plateau schedule on the validation loss and gradual unfreezing."""
import logging
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import BaseFinetuning
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Unfreeze(BaseFinetuning):
    def freeze_before_training(self, pl_module):
        self.freeze(pl_module.backbone)

    def finetune_function(self, pl_module, epoch, optimizer):
        if epoch == 2:
            self.unfreeze_and_add_param_group(pl_module.backbone, optimizer, lr=1e-3)


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Linear(32, 16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.backbone(x)).squeeze(1)

    def training_step(self, batch):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("loss", loss)
        return {"loss": loss}

    def validation_step(self, batch):
        x, y = batch
        self.log("val_loss", F.mse_loss(self(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, self.parameters()), lr=0.05, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "val_loss"}}


L.seed_everything(1, verbose=False)
x = torch.randn(512, 6)
y = x[:, 0] * x[:, 1] + x[:, 2]
model = Regressor()
with tempfile.TemporaryDirectory() as folder:
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=8,
        accumulate_grad_batches=4,
        callbacks=[Unfreeze()],
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=16, shuffle=True)
    valid = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=56)
    trainer.fit(model, train, valid)
print(f"validation loss {float(trainer.callback_metrics['val_loss']):.3f} after {trainer.global_step} steps")
