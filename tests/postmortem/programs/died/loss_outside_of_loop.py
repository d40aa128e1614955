# says: `loss` is computed once, and the loop calls backward on it again
# says: compute `loss` inside the loop
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), 0.0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
pred = model(x)
loss = nn.functional.mse_loss(pred, y)  # related
for epoch in range(3):
    opt.zero_grad()
    loss.backward()  # died: graph-freed
