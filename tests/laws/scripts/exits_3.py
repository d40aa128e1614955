import atexit
import sys

import torch
from _state import tell
from torch import nn

torch.manual_seed(14)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
atexit.register(tell, model, optimizer)
for step in range(10):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
    loss.backward()
    optimizer.step()
    print(repr(loss.item()))
    if step == 6:
        print("no better", file=sys.stderr)
        sys.exit(3)
