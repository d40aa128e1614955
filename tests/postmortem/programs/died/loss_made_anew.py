# says: `loss` was made from `torch.tensor(...)`
import torch
from torch import nn

model = nn.Linear(4, 1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
losses = [(model(a) - b).pow(2) for a, b in zip(x, y)]
loss = torch.tensor(losses).mean()  # related
loss.backward()  # died: loss-without-graph
