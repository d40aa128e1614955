"""Lightning, manual optimization: gradients are never cleared."""
import logging
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        optimizer = self.optimizers()
        loss = F.mse_loss(self.net(x), y)
        self.manual_backward(loss)
        optimizer.step()  # error: missing-zero-grad

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


L.seed_everything(0, verbose=False)
x = torch.randn(320, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
trainer = L.Trainer(
    accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)  # fmt: skip
trainer.fit(Regressor(), loader)
print(f"done after {trainer.global_step} steps")
