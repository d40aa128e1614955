# says: `features` was computed before the loop
# says: compute `features` inside the loop
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(10, 16), nn.Tanh())
head = nn.Linear(16, 2)
opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
x, y = torch.randn(32, 10), torch.randint(0, 2, (32,))
features = encoder(x)  # related
for epoch in range(5):
    loss = nn.functional.cross_entropy(head(features), y)
    opt.zero_grad()
    loss.backward()  # died: graph-freed
    opt.step()
