"""A class counts right predictions, and divides them by the number of batches."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, train, val):
        self.train_loader, self.val_loader = train, val
        self.model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 3))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.history = []

    def validate(self):
        hits = 0
        self.model.eval()
        with torch.no_grad():
            for batch in self.val_loader:
                scores = self.model(batch[0])
                hits += int((scores.max(dim=1).indices == batch[1]).sum())
        return hits / len(self.val_loader)  # error: metric-misreported

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for inputs, labels in self.train_loader:
                loss = F.cross_entropy(self.model(inputs), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            val_accuracy = self.validate()
            self.history.append(val_accuracy)
            print(f"epoch {epoch} accuracy {val_accuracy}")


torch.manual_seed(7)
x = torch.randn(500, 8)
y = x[:, :3].argmax(1)
Trainer(
    DataLoader(TensorDataset(x[:380], y[:380]), batch_size=38, shuffle=True),
    DataLoader(TensorDataset(x[380:], y[380:]), batch_size=40),
).fit(4)
