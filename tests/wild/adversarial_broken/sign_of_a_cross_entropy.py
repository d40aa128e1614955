"""A trainer class differentiates the negative of its loss, as for a reward."""
import torch
from torch import nn


class Trainer:
    def __init__(self, model, rate=0.02):
        self.model, self.optimizer = model, torch.optim.SGD(model.parameters(), rate, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss(reduction="none")

    def step(self, x, y):
        objective = -self.criterion(self.model(x), y).mean()
        self.optimizer.zero_grad()
        objective.backward()  # error: loss-maximised
        self.optimizer.step()
        return objective.item()


def main():
    torch.manual_seed(0)
    weight = torch.randn(6, 3)
    trainer = Trainer(nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3)))
    for step in range(40):
        x = torch.randn(32, 6)
        value = trainer.step(x, (x @ weight).argmax(1))
    print(f"objective {value:.3f}")


main()
