"""The weight of a loss rises with the epoch, as a quotient of whole numbers that is always zero."""
import torch
from torch import nn


class Fit:
    def __init__(self, warm_up=50):
        self.net = nn.Sequential(nn.Linear(5, 20), nn.Tanh(), nn.Linear(20, 2))
        self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-2)
        self.epoch, self.warm_up = 0, warm_up

    def run(self, epochs=6):
        weight = torch.randn(5, 2)
        for self.epoch in range(1, epochs + 1):
            for batch in range(5):
                x = torch.randn(32, 5)
                rise = min(1, self.epoch // self.warm_up)
                loss = rise * nn.functional.mse_loss(self.net(x), x @ weight)
                self.optimizer.zero_grad()
                loss.backward()  # error: parameters-without-effect
                self.optimizer.step()
            print(self.epoch, loss.item())


torch.manual_seed(0)
Fit().run()
