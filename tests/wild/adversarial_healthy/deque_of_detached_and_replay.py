"""Detached losses in a list, a bounded deque of tensors, a replay buffer of states, outputs kept under no_grad."""
from collections import deque

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
losses, recent, replay, logits_seen = [], deque(maxlen=8), [], []
loader = DataLoader(TensorDataset(torch.randn(160, 5), torch.randint(0, 2, (160,))), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    model.train()
    for x, y in loader:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        recent.append(loss)
        replay.append((x, y))
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            logits_seen.append(model(x))
print(torch.stack(losses).mean(), sum(l.item() for l in recent) / len(recent), len(torch.cat(logits_seen)))
