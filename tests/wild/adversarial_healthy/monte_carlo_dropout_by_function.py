"""Dropout by functions that stays on in evaluation: sampled per batch, over several passes, and said in so many words."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(160, 4)
y = (3 * x[:, :1]).sin() + 0.1 * torch.randn(160, 1)
train_loader = DataLoader(TensorDataset(x[:128], y[:128]), 16, shuffle=True)
test_loader = DataLoader(TensorDataset(x[128:], y[128:]), 8)


class Sampled(nn.Module):
    """Without a word: the default of the function is intended."""

    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(4, 32), nn.BatchNorm1d(32), nn.Linear(32, 1)

    def forward(self, x):
        return self.head(F.dropout(torch.relu(self.norm(self.body(x))), 0.1))


class Prenet(nn.Module):
    """As in the decoders of speech models."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.head(F.dropout(torch.relu(self.body(x)), 0.2, training=True))


class Switched(nn.Module):
    """With a separate switch."""

    def __init__(self):
        super().__init__()
        self.body, self.head, self.sampling = nn.Linear(4, 32), nn.Linear(32, 1), False

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        if self.training or self.sampling:
            hidden = F.dropout(hidden, 0.2)
        return self.head(hidden)


def evaluate(model):
    model.eval()
    with torch.no_grad():
        return sum(F.mse_loss(model(x), y).item() for x, y in test_loader) / len(test_loader)


for model in (Sampled(), Prenet(), Switched()):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for epoch in range(3):
        model.train()
        for inputs, targets in train_loader:
            optimizer.zero_grad()
            F.mse_loss(model(inputs), targets).backward()
            optimizer.step()
        print(type(model).__name__, epoch, round(evaluate(model), 4))
    model.sampling = True
    model.eval()
    with torch.no_grad():
        passes = [torch.cat([model(x) for x, _ in test_loader]) for _ in range(8)]
        batches = [torch.stack([model(x) for _ in range(8)]).std(0).mean() for x, _ in test_loader]
    print(torch.stack(passes).std(0).mean().item(), torch.stack(batches).mean().item())
