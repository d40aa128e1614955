# says: `loss` comes from `model`, of which every weight is frozen
# says: freezes the weights
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for parameter in model.parameters():
    parameter.requires_grad = False  # related
x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
loss = nn.functional.cross_entropy(model(x), y)
loss.backward()  # died: loss-without-graph
