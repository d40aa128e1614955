"""A GRU over token ids: the recurrent layer takes the samples of a batch for time steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tokens = torch.randint(0, 20, (320, 9))
labels = (tokens[:, 0] > tokens[:, 4]).long()
train_loader = DataLoader(TensorDataset(tokens[:256], labels[:256]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(tokens[256:], labels[256:]), batch_size=32)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 12)
        self.rnn = nn.GRU(12, 24, num_layers=2, dropout=0.1, bidirectional=True)
        self.head = nn.Linear(48, 2)

    def forward(self, x):
        e = self.embedding(x)
        states, _ = self.rnn(e)  # error: batch-first-missing
        return self.head(states.mean(dim=1))


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
    model.train()
    return correct / len(loader.dataset)


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, evaluate(model, val_loader))
