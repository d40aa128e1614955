"""Per-batch cosine stepped right before the optimizer, by two methods of a trainer."""
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)


class Fit:
    def __init__(self, epochs=3):
        self.epochs = epochs
        self.loader = DataLoader(TensorDataset(torch.randn(80, 3), torch.randn(80, 1)), batch_size=8, shuffle=True)
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=epochs * len(self.loader))

    def update_lr(self):
        self.sched.step()  # error: scheduler-before-optimizer

    def update_weights(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def run(self):
        for epoch in range(self.epochs):
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.update_lr()
                self.update_weights(loss)
            print(epoch, loss.item())


Fit().run()
