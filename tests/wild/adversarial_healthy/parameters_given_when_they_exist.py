"""The optimizer is built after the network gets its embedding of categories."""

import torch
from torch import nn

torch.manual_seed(0)
numbers, category = torch.randn(600, 5), torch.randint(0, 12, (600,))
effects = torch.randn(12)
target = numbers[:, 0] + effects[category]


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5 + 4, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, numbers, category):
        return self.body(torch.cat([numbers, self.categories(category)], 1)).squeeze(1)


model = Table()
model.categories = nn.Embedding(12, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(5):
    for rows in torch.randperm(600).split(30):
        loss = nn.functional.mse_loss(model(numbers[rows], category[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
