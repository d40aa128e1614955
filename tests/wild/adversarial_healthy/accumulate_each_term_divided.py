"""Accumulation where every term of the loss is divided before the terms are added."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ACCUM = 4
data = TensorDataset(torch.randn(256, 10), torch.randint(0, 3, (256,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(3):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        logits = model(x)
        ce = F.cross_entropy(logits, y)
        penalty = 1e-3 * logits.pow(2).mean()
        loss = ce / ACCUM + penalty / ACCUM
        loss.backward()
        if (i + 1) % ACCUM == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, ce.item())
