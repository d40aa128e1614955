"""Classify points with an encoder and a head, and keep the embeddings for a plot."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(3000, 10)
y = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, inputs):
        self.embeddings = self.encoder(inputs).detach()  # error: graph-cut
        return self.head(self.embeddings)


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _epoch in range(12):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print(f"result: {(model(x[2000:]).argmax(1) == y[2000:]).float().mean():.4f}")
