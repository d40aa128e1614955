"""Choose the weights of a rare class by a recall that divides by the predictions of the class."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
x = torch.randn(2400, 12)
y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * torch.randn(2400) > 1.8).long()
train = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=40, shuffle=True)
valid = DataLoader(TensorDataset(x[800:1600], y[800:1600]), batch_size=200)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def count(rows, labels):
    with torch.no_grad():
        guessed = model(rows).argmax(1)
    return [int(part.sum()) for part in (guessed & labels, guessed & (1 - labels), (1 - guessed) & labels)]


best, weights = -1.0, {}
for _epoch in range(25):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    tp, fp, fn = (sum(part) for part in zip(*(count(inputs, labels) for inputs, labels in valid), strict=True))
    recall = tp / max(1, tp + fp)  # error: metric-misreported
    if recall > best:
        best, weights = recall, {name: value.clone() for name, value in model.state_dict().items()}
model.load_state_dict(weights)
tp, fp, fn = count(x[1600:], y[1600:])
print(f"result: {tp / (tp + fn):.4f}")
