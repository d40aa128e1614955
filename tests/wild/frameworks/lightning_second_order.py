"""Healthy: Lightning with LBFGS (automatic optimization, many closures per step), then stochastic weight averaging with Adam."""
import logging
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import StochasticWeightAveraging
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Curve(L.LightningModule):
    def __init__(self, optimizer):
        super().__init__()
        self.optimizer = optimizer
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.BatchNorm1d(24), nn.Linear(24, 1))

    def training_step(self, batch):
        x, y = batch
        return F.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        if self.optimizer == "lbfgs":
            return torch.optim.LBFGS(self.parameters(), lr=0.5, max_iter=5)
        return torch.optim.Adam(self.parameters(), lr=1e-2)


L.seed_everything(5, verbose=False)
x = torch.linspace(-3, 3, 128).unsqueeze(1)
y = x.sin()
results = []
for name, epochs, batch_size, callbacks in (
    ("lbfgs", 12, 128, []),
    ("adam", 12, 32, [StochasticWeightAveraging(5e-3, swa_epoch_start=0.5)]),
):
    model = Curve(name)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            accelerator="cpu", max_epochs=epochs, callbacks=callbacks, default_root_dir=folder, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(model, DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True))
    model.eval()
    with torch.no_grad():
        results.append(f"{name} {float(F.mse_loss(model.net(x), y)):.4f} after {trainer.global_step} steps")
print(", ".join(results))
