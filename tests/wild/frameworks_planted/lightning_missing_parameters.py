"""Lightning: configure_optimizers leaves a scale out."""
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


class Attention(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 16)
        self.scale = nn.Parameter(torch.ones(16))
        self.second = nn.Linear(16, 3)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.second(torch.relu(self.first(x)) * self.scale), y)

    def configure_optimizers(self):
        parameters = [*self.first.parameters(), *self.second.parameters()]
        return torch.optim.SGD(parameters, lr=0.1)  # error: parameters-not-optimized


L.seed_everything(0, verbose=False)
x = torch.randn(320, 4)
loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=16, shuffle=True)
trainer = L.Trainer(
    accelerator="cpu", max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)  # fmt: skip
trainer.fit(Attention(), loader)
print(f"done after {trainer.global_step} steps")
