"""Healthy: zero_grad after the step (the loop starts with clean gradients), in a small trainer class."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, criterion, train_dl, valid_dl):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion
        self.train_dl = train_dl
        self.valid_dl = valid_dl
        self.history = []

    def train_step(self, xb, yb):
        loss = self.criterion(self.model(xb), yb)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            losses, nums = zip(*[(self.criterion(self.model(xb), yb).item(), len(xb)) for xb, yb in self.valid_dl])
        return sum(l * n for l, n in zip(losses, nums)) / sum(nums)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for xb, yb in self.train_dl:
                self.train_step(xb, yb)
            val_loss = self.validate()
            self.history.append(val_loss)
            print(epoch, round(val_loss, 5))


def get_data():
    x = torch.rand(512, 6) * 2 - 1
    y = (x[:, :1] * x[:, 1:2] + torch.sin(3 * x[:, 2:3])) + 0.05 * torch.randn(512, 1)
    train_ds, valid_ds = TensorDataset(x[:384], y[:384]), TensorDataset(x[384:], y[384:])
    return DataLoader(train_ds, batch_size=32, shuffle=True), DataLoader(valid_ds, batch_size=64)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    train_dl, valid_dl = get_data()
    model = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.BatchNorm1d(64), nn.Linear(64, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    trainer = Trainer(model, opt, nn.MSELoss(), train_dl, valid_dl)
    trainer.fit(8)
    print("best", round(min(trainer.history), 5))
