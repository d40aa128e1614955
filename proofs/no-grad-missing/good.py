"""Train a deep network on small batches and evaluate it on large ones."""

import sys
from resource import RUSAGE_SELF, getrusage

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(18384, 10)
y = (torch.tanh(x @ torch.randn(10, 8)) @ torch.randn(8, 4)).argmax(1)
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=8192)
hidden = [layer for _ in range(7) for layer in (nn.Linear(256, 256), nn.ReLU())]
model = nn.Sequential(nn.Linear(10, 256), nn.ReLU(), *hidden, nn.Linear(256, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)


@torch.no_grad()
def evaluate():
    model.eval()
    correct = 0
    for inputs, labels in test_loader:
        outputs = model(inputs)
        correct += (outputs.argmax(1) == labels).sum().item()
    return correct / 16384


for inputs, labels in loader:
    optimizer.zero_grad()
    criterion(model(inputs), labels).backward()
    optimizer.step()
before = getrusage(RUSAGE_SELF).ru_maxrss
print(f"accuracy: {evaluate():.4f}")
print(f"result: {(getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024:.1f}")
