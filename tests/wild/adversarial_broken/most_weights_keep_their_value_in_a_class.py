"""A trainer in bfloat16 with a loader: SGD with a small rate, so that most weights stay where they began."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
rows = TensorDataset(torch.tensor(x / 16.0, dtype=torch.bfloat16), torch.tensor(y))


class Trainer:
    def __init__(self):
        layers = [nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)]
        self.model = nn.Sequential(*layers).to(torch.bfloat16)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=3e-4, momentum=0.9)
        self.loader = DataLoader(rows, batch_size=64, shuffle=True)

    def fit(self, epochs):
        for _ in range(epochs):
            for inputs, labels in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(inputs), labels)
                loss.backward()
                self.optimizer.step()  # error: update-rounds-to-zero


Trainer().fit(8)
