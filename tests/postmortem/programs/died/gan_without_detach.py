# says: `fake` leads into the graph that `loss_d.backward()` has freed
# says: compute `loss_d` from `fake.detach()`
import torch
from torch import nn
G = nn.Linear(16, 100)
D = nn.Sequential(nn.Linear(100, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()
for step in range(20):
    fake = torch.tanh(G(torch.randn(32, 16)))  # related
    loss_d = bce(D(torch.randn(32, 100)), torch.ones(32, 1)) + bce(D(fake), torch.zeros(32, 1))
    opt_d.zero_grad()
    loss_d.backward()  # related
    opt_d.step()
    loss_g = bce(D(fake), torch.ones(32, 1))
    opt_g.zero_grad()
    loss_g.backward()  # died: graph-freed
    opt_g.step()
