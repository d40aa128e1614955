# says: was overwritten after the forward pass had saved it
# says: without `inplace=True`
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.act = nn.ReLU(inplace=True)  # related

    def forward(self, x):
        gate = torch.sigmoid(self.lin(x))
        return self.act(gate) * x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate()
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.gate(x))


class Trainer:
    def __init__(self):
        self.net = Net()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def fit(self, steps):
        for _ in range(steps):
            loss = self.net(torch.randn(4, 8)).mean()
            self.optimizer.zero_grad()
            loss.backward()  # died: modified-in-place
            self.optimizer.step()


Trainer().fit(3)
