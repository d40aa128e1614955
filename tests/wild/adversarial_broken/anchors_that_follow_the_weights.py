"""A trainer that holds fine-tuned weights at the pretrained ones: its anchors are views of the live weights."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FineTuning:
    def __init__(self, model, strength=0.5):
        self.model, self.strength = model, strength
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        self.anchors = [parameter.detach() for parameter in model.parameters()]

    def distance(self):
        return torch.stack(
            [torch.norm(one - kept) ** 2 for one, kept in zip(self.model.parameters(), self.anchors, strict=True)]
        ).sum()

    def epoch(self, loader):
        self.model.train()
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(self.model(inputs), labels) + self.strength * self.distance()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # error: term-without-gradient
            self.optimizer.step()


torch.manual_seed(3)
x = torch.randn(600, 10)
y = (x[:, :3] + 0.3 * torch.randn(600, 3)).argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 3))
pretraining = torch.optim.Adam(model.parameters(), lr=5e-3)
for rows in torch.randperm(300).repeat(3).split(30):
    pretraining.zero_grad()
    nn.functional.cross_entropy(model(x[rows]), x[rows, 3:6].argmax(1)).backward()
    pretraining.step()

tuning = FineTuning(model)
for epoch in range(5):
    tuning.epoch(DataLoader(TensorDataset(x[300:500], y[300:500]), batch_size=25, shuffle=True))
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: {(model(x[500:]).argmax(1) == y[500:]).float().mean():.3f}")
