# says: `losses` holds 20 tensors with the graphs behind them
# says: `.detach()`
import torch
from torch import nn

model = nn.Linear(1000, 1000)
losses = []
for step in range(20):
    losses.append(model(torch.randn(4, 1000)).mean())
torch.empty(1 << 46)  # died: out-of-memory
