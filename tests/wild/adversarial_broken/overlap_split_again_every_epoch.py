"""The validation samples are drawn again in each epoch: those of the second one were trained on in the first."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Trainer:
    def __init__(self, model, data):
        self.model, self.data = model, data
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def loaders(self):
        train, val = random_split(self.data, [0.7, 0.3])
        return DataLoader(train, batch_size=15, shuffle=True), DataLoader(val, batch_size=30)

    def run(self, epochs):
        for epoch in range(epochs):
            train, val = self.loaders()
            self.model.train()
            for x, y in train:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
            print(epoch, self.validate(val))

    @torch.no_grad()
    def validate(self, val):
        self.model.eval()
        errors = [(self.model(x) - y).pow(2).mean() for x, y in val]  # error: train-validation-overlap
        return torch.stack(errors).mean().item()


torch.manual_seed(0)
x = torch.randn(150, 7)
model = nn.Sequential(nn.Linear(7, 24), nn.Tanh(), nn.Linear(24, 1))
Trainer(model, TensorDataset(x, x[:, :1] * x[:, 1:2] + torch.randn(150, 1))).run(4)
