"""zero_grad lives in on_epoch_start."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Engine:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.data = DataLoader(TensorDataset(torch.randn(120, 5), torch.randn(120, 1)), batch_size=20, shuffle=True)

    def on_epoch_start(self):
        self.net.train()
        self.opt.zero_grad()

    def training_step(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def run(self, epochs=4):
        for _ in range(epochs):
            self.on_epoch_start()
            for batch in self.data:
                loss = self.training_step(batch)
                loss.backward()
                self.opt.step()  # error: zero-grad-once-per-epoch
            print(loss.item())


Engine().run()
