"""Ignite: layers in a plain list, softmax before cross entropy and sigmoid before the logits loss, each in an update function."""
import torch
import torch.nn.functional as F
from ignite.engine import Engine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 5)


class Net(nn.Module):
    def __init__(self, outputs, last=None):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(5, 16), nn.Linear(16, outputs), last or nn.Identity()

    def forward(self, x):
        return self.last(self.second(self.first(x).relu()))


class Listed(Net):
    def __init__(self):
        super().__init__(2)
        self.hidden = [nn.Linear(16, 16) for _ in range(2)]

    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.hidden:
            x = layer(x).relu()  # error: layers-in-plain-container
        return self.second(x)


def engine(model, loss_of):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def update(engine, batch):
        model.train()
        optimizer.zero_grad()
        inputs, targets = batch
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Engine(update)


def plain(output, targets):
    return F.cross_entropy(output, targets)


def probabilities(output, targets):
    return F.cross_entropy(output, targets)  # error: softmax-before-cross-entropy


def logits(output, targets):
    return F.binary_cross_entropy_with_logits(output, targets)  # error: sigmoid-before-bce-with-logits


sign = x[:, 0].gt(0).long()
for trainer, y in (
    (engine(Listed(), plain), sign),
    (engine(Net(2, nn.Softmax(dim=1)), probabilities), sign),
    (engine(Net(1, nn.Sigmoid()), logits), sign[:, None].float()),
):
    trainer.run(DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True), max_epochs=3)
    print(f"loss {trainer.state.output:.2f} after {trainer.state.iteration} iterations")
