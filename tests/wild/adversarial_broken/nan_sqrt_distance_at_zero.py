"""The gradient of a distance at zero is NaN; from the next step on everything is."""
import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Embedding(20, 8)
optimizer = torch.optim.Adam(embed.parameters(), lr=1e-2)
for step in range(40):
    anchor = torch.randint(0, 20, (16,))
    positive = torch.randint(0, 20, (16,))
    a, b = embed(anchor), embed(positive)
    distance = torch.sqrt(((a - b) ** 2).sum(1))
    loss = (distance - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # error: nan-or-inf
    optimizer.step()
print(loss.item())
