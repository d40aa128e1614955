"""A trainer that clears the gradients of the trainable parameters, and unfreezes nothing it froze."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def freeze(self, until):
        for layer in list(self.model)[:until]:
            for p in layer.parameters():
                p.requires_grad = False

    def fit(self, x, y, steps):
        for _ in range(steps):
            for p in self.model.parameters():
                if p.requires_grad:
                    p.grad = None
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()  # error: frozen-parameter-moves


torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randn(64, 1)
trainer = Trainer(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)))
trainer.fit(x, y, 15)
trainer.freeze(until=3)
trainer.fit(x, y, 40)
