import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Config:
    seed = 3
    n_train, n_val = 1000, 400
    width = 64
    batch_size = 50
    epochs = 40
    lr = 0.01
    decay_every = 12     # epochs
    decay = 0.5


class SurfaceNet(nn.Module):
    """y = f(x) for a smooth surface of two variables."""

    def __init__(self, width):
        super().__init__()
        self.fc_in = nn.Linear(2, width)
        self.fc_mid = nn.Linear(width, width)
        self.fc_out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.tanh(self.fc_in(x))
        h = torch.tanh(self.fc_mid(h)) + h
        return self.fc_out(h).squeeze(-1)


def target_fn(x):
    return torch.sin(2 * x[:, 0]) * torch.cos(x[:, 1]) + 0.3 * x[:, 0] * x[:, 1]


class Trainer:
    def __init__(self, cfg):
        torch.manual_seed(cfg.seed)
        self.cfg = cfg
        x = 4 * torch.rand(cfg.n_train + cfg.n_val, 2) - 2
        y = target_fn(x) + 0.05 * torch.randn(len(x))
        self.train_set = (x[:cfg.n_train], y[:cfg.n_train])
        self.val_set = (x[cfg.n_train:], y[cfg.n_train:])
        self.model = SurfaceNet(cfg.width)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, cfg.decay_every, gamma=cfg.decay)

    def train_epoch(self):
        self.model.train()
        x, y = self.train_set
        total = 0.0
        for idx in torch.randperm(len(x)).split(self.cfg.batch_size):
            loss = F.mse_loss(self.model(x[idx]), y[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
        return total / len(x)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.val_set
        return F.mse_loss(self.model(x), y).item()

    def fit(self):
        for epoch in range(1, self.cfg.epochs + 1):
            train_loss = self.train_epoch()
            self.scheduler.step()
            if epoch % 8 == 0:
                print(f'epoch {epoch:2d}  train {train_loss:.5f}  val {self.validate():.5f}')
        return self.validate()


if __name__ == '__main__':
    final = Trainer(Config()).fit()
    print(f'final validation RMSE {math.sqrt(final):.4f} (noise 0.05)')
