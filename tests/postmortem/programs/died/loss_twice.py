# says: backward was called twice on `loss`
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(3):
    loss = model(torch.randn(16, 4)).pow(2).mean()
    loss.backward()  # related
    opt.step()
    loss.backward()  # died: graph-freed
