from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.loss = nn.CrossEntropyLoss()
        self.function = nn.functional.mse_loss

    def forward(self, x):
        return self.body(x)
