"""train() in the constructor, eval() in test(); from the second epoch on dropout is off."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Experiment:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 1))
        self.model.train()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.criterion = nn.SmoothL1Loss()
        self.tr = DataLoader(TensorDataset(torch.randn(96, 6), torch.randn(96, 1)), batch_size=16, shuffle=True)
        self.te = DataLoader(TensorDataset(torch.randn(32, 6), torch.randn(32, 1)), batch_size=16)

    def forward_loss(self, batch):
        x, y = batch
        return self.criterion(self.model(x), y)  # error: train-mode-not-restored

    def train(self):
        for batch in self.tr:
            self.opt.zero_grad()
            loss = self.forward_loss(batch)
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def test(self):
        self.model.eval()
        return sum(self.forward_loss(b).item() for b in self.te) / len(self.te)

    def run(self, epochs=4):
        for e in range(epochs):
            self.train()
            print(e, self.test())


Experiment().run()
