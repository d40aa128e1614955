"""The recall of a rare class is averaged over small batches, and those without one of it count as zero."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2400, 6)
y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 1.4).float()
training = DataLoader(TensorDataset(x[:1800], y[:1800]), batch_size=60, shuffle=True)
held_out = DataLoader(TensorDataset(x[1800:], y[1800:]), batch_size=20)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


@torch.no_grad()
def evaluate():
    model.eval()
    shares = []
    for inputs, wanted in held_out:
        predicted = model(inputs).squeeze(1) > 0
        found = (predicted & (wanted == 1)).sum().item()
        shares.append(found / max(wanted.sum().item(), 1))
    return sum(shares) / len(shares)


for epoch in range(8):
    model.train()
    for inputs, wanted in training:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(inputs).squeeze(1), wanted)
        loss.backward()
        optimizer.step()
    recall = evaluate()  # error: metric-misreported
    print(epoch, recall)
