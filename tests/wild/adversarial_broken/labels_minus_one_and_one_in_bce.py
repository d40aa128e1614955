"""Labels of -1 and 1, as for a support vector machine, in a trainer that uses the loss as a module."""

import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(400, 8)
Y = torch.sign(X[:, :1] + 0.5 * torch.randn(400, 1))
data = torch.utils.data.TensorDataset(X, Y)


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model, self.criterion = model, nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def epoch(self) -> None:
        for x, y in torch.utils.data.DataLoader(data, batch_size=50, shuffle=True):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)  # error: labels-not-probabilities
            loss.backward()
            self.optimizer.step()


trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
for _epoch in range(5):
    trainer.epoch()
