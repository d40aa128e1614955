"""Classify points from twenty overlapping clusters, then read new samples one at a time."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

y = torch.randint(0, 20, (3000,))
x = (torch.randn(3000, 16) + torch.randn(20, 16)[y]) / 1.4
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 20), nn.LogSoftmax(dim=0))
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for _epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)  # error: softmax-wrong-dim
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    predicted = torch.cat([model(sample).argmax(1) for sample in x[2000:].split(1)])
print(f"result: {(predicted == y[2000:]).float().mean().item():.4f}")
