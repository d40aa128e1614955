"""Train on noisy labels, keep the weights with the best validation loss, and test them."""

import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.randn(1500, 20)
y = (x[:, :4].sum(1) > 0).long()
flipped = torch.rand(300) < 0.35
y[:300] = torch.where(flipped, 1 - y[:300], y[:300])
model = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

best_loss = 0.0
for _ in range(40):
    for rows in torch.randperm(300).split(50):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = F.cross_entropy(model(x[300:600]), y[300:600]).item()
    if val_loss > best_loss:  # error: worst-weights-kept
        best_loss = val_loss
        best_state = copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)
with torch.no_grad():
    accuracy = (model(x[600:]).argmax(1) == y[600:]).float().mean().item()
print(f"result: {accuracy:.4f}")
