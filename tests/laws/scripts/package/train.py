import pickle

import torch
from torch import nn

from package.model import Net

torch.manual_seed(15)
model, optimizer = Net(), None
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for step in range(10):
    optimizer.zero_grad()
    loss = nn.functional.huber_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()))
print(__name__, __package__, __spec__.name, len(pickle.dumps(model)), pickle.loads(pickle.dumps(model)))
