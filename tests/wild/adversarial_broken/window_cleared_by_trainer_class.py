"""A trainer clears at the start of each epoch, evaluates after it, and drops batches that did not fill a window."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train, valid, accumulate=4):
        self.model, self.train, self.valid, self.accumulate = model, train, valid, accumulate
        self.optim = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.loss_fn = nn.MSELoss()

    def train_epoch(self):
        self.model.train()
        self.model.zero_grad()
        for i, (x, y) in enumerate(self.train):
            (self.loss_fn(self.model(x), y) / self.accumulate).backward()
            if (i + 1) % self.accumulate == 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optim.step()  # error: accumulation-window-dropped
                for p in self.model.parameters():
                    p.grad = None

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        return sum(self.loss_fn(self.model(x), y).item() for x, y in self.valid) / len(self.valid)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            print(epoch, self.evaluate())


torch.manual_seed(1)
x = torch.randn(150, 5)
y = x.sum(dim=1, keepdim=True) + 0.1 * torch.randn(150, 1)
data = TensorDataset(x, y)
train, valid = torch.utils.data.random_split(data, [110, 40])
model = nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.1), nn.Tanh(), nn.Linear(16, 1))
Trainer(model, DataLoader(train, batch_size=10, shuffle=True), DataLoader(valid, batch_size=20)).fit(8)
