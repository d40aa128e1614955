"""A penalty that is read as a number, a loss on the loader of the evaluation, and a reference that is the model."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
train_loader = DataLoader(TensorDataset(x[:500], y[:500]), batch_size=25, shuffle=True)
test_loader = DataLoader(TensorDataset(x[500:], y[500:]), batch_size=25)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head, self.side = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 2)

    def forward(self, inputs):
        hidden = torch.tanh(self.body(inputs))
        return self.head(hidden), self.side(hidden)


class Trainer:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters(), lr=1e-2)

    def fit(self, epochs):
        for _ in range(epochs):
            for inputs, labels in test_loader:  # error: training-on-evaluation-data
                scores, side = self.model(inputs)
                penalty = side.square().mean()
                loss = nn.functional.cross_entropy(scores + side, labels) + 0.5 * penalty.detach()  # error: term-without-gradient
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.evaluate()

    def evaluate(self):
        with torch.no_grad():
            right = sum((self.model(inputs)[0].argmax(1) == labels).sum().item() for inputs, labels in test_loader)
        print(right)

    def hold(self, other, steps):
        for _ in range(steps):
            scores, _ = self.model(x[:50])
            with torch.no_grad():
                before, _ = other(x[:50])
            self.optimizer.zero_grad()
            torch.logaddexp(scores - before, before - scores).mean().backward()  # error: loss-never-changes
            self.optimizer.step()


net = Net()
trainer = Trainer(net)
trainer.fit(8)
trainer.hold(net, 60)
