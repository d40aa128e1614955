"""self.total += loss over the whole run."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total = self.total + value  # error: loss-kept-with-graph
        self.count += 1


class Trainer:
    def __init__(self):
        self.model = nn.Linear(5, 3)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.meter = Meter()

    def train(self, loader):
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.meter.update(loss)


trainer = Trainer()
dl = DataLoader(TensorDataset(torch.randn(200, 5), torch.randint(0, 3, (200,))), batch_size=10, shuffle=True)
for epoch in range(4):
    trainer.train(dl)
print(float(trainer.meter.total) / trainer.meter.count)
