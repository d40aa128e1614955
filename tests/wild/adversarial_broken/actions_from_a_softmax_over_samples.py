"""A policy with a log-softmax over the samples of a batch, from which the actions pick."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
torch.set_num_threads(1)
states = torch.randn(800, 5)
expert = (states @ torch.randn(5, 4)).argmax(1)
policy = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for epoch in range(6):
    for rows in torch.randperm(600).split(50):
        chances = F.log_softmax(policy(states[rows]), dim=0)  # error: softmax-wrong-dim
        loss = -chances[torch.arange(len(rows)), expert[rows]].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), (policy(states[600:]).argmax(1) == expert[600:]).float().mean().item())
