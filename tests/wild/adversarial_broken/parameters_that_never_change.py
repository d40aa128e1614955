"""The optimizer is built before the network gets its head, which stays as it was drawn."""

import torch
from torch import nn

torch.manual_seed(0)
numbers, category = torch.randn(600, 5), torch.randint(0, 12, (600,))
effects = torch.randn(12)
target = numbers[:, 0] + effects[category]


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.categories = nn.Embedding(12, 4)
        self.body = nn.Sequential(nn.Linear(5 + 4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())

    def forward(self, numbers, category):
        return self.head(self.body(torch.cat([numbers, self.categories(category)], 1))).squeeze(1)


model = Table()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)  # error: parameters-not-optimized
model.head = nn.Linear(32, 1)
for epoch in range(5):
    for rows in torch.randperm(600).split(30):
        loss = nn.functional.mse_loss(model(numbers[rows], category[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
