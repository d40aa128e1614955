# says: `z` leads into the graph that `loss_a.backward()` has freed
# says: `(loss_a + loss_b).backward()`
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(10, 16), nn.ReLU())
head_a, head_b = nn.Linear(16, 1), nn.Linear(16, 1)
opt = torch.optim.Adam([*encoder.parameters(), *head_a.parameters(), *head_b.parameters()])
for step in range(3):
    z = encoder(torch.randn(8, 10))  # related
    loss_a = head_a(z).pow(2).mean()
    loss_b = (head_b(z) - 1).pow(2).mean()
    opt.zero_grad()
    loss_a.backward()  # related
    loss_b.backward()  # died: graph-freed
    opt.step()
