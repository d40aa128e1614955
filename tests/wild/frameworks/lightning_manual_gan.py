"""Healthy: Lightning GAN with manual optimization, two optimizers, toggled, and a schedule for each."""
import logging
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)


class GAN(L.LightningModule):
    def __init__(self, latent_dim=8):
        super().__init__()
        self.latent_dim = latent_dim
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(latent_dim, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, z):
        return self.generator(z)

    def training_step(self, batch, batch_idx):
        (real,) = batch
        opt_g, opt_d = self.optimizers()
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

        self.toggle_optimizer(opt_g)
        z = torch.randn(len(real), self.latent_dim, device=self.device)
        g_loss = F.binary_cross_entropy_with_logits(self.discriminator(self(z)), ones)
        self.log("g_loss", g_loss)
        self.manual_backward(g_loss)
        opt_g.step()
        opt_g.zero_grad()
        self.untoggle_optimizer(opt_g)

        self.toggle_optimizer(opt_d)
        real_loss = F.binary_cross_entropy_with_logits(self.discriminator(real), ones)
        fake_loss = F.binary_cross_entropy_with_logits(self.discriminator(self(z).detach()), zeros)
        d_loss = (real_loss + fake_loss) / 2
        self.log("d_loss", d_loss)
        self.manual_backward(d_loss)
        opt_d.step()
        opt_d.zero_grad()
        self.untoggle_optimizer(opt_d)

    def on_train_epoch_end(self):
        for schedule in self.lr_schedulers():
            schedule.step()

    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
        schedules = [torch.optim.lr_scheduler.ExponentialLR(opt, 0.99) for opt in (opt_g, opt_d)]
        return [opt_g, opt_d], schedules


L.seed_everything(3, verbose=False)
theta = torch.rand(640) * 2 * torch.pi
circle = TensorDataset(torch.stack([theta.cos(), theta.sin()], 1) + 0.02 * torch.randn(640, 2))
model = GAN()
with tempfile.TemporaryDirectory() as folder:
    trainer = L.Trainer(
        accelerator="cpu", max_epochs=4, logger=False, enable_checkpointing=False, default_root_dir=folder,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model, DataLoader(circle, batch_size=32, shuffle=True))
model.eval()
with torch.no_grad():
    radius = model(torch.randn(256, 8)).norm(dim=1).mean()
print(f"mean radius {radius:.2f} after {trainer.global_step} steps")
