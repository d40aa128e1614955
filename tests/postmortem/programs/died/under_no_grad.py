# says: `loss` comes from a computation under `torch.no_grad()`
# says: compute it outside of
import torch
from torch import nn

model = nn.Linear(4, 1)
x = torch.randn(8, 4)
with torch.no_grad():  # related
    pred = model(x)  # related
loss = pred.pow(2).mean()
loss.backward()  # died: loss-without-graph
