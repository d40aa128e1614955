"""Items of baskets with a query that looks at them: the score of padding is 1e-9 in place of -1e9."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
ITEMS, LONGEST, WIDTH = 24, 9, 16
prices = torch.rand(ITEMS + 1)
lengths = torch.randint(2, LONGEST + 1, (800, 1))
baskets = torch.randint(1, ITEMS + 1, (800, LONGEST)) * (torch.arange(LONGEST) < lengths)
means = (prices[baskets] * (baskets != 0)).sum(1) / lengths.squeeze(1)
labels = (means > means.median()).long()


def attend(query, keys, values, keep):
    scores = query @ keys.transpose(-2, -1) / WIDTH**0.5
    scores = scores.masked_fill(keep == 0, 1e-9)  # error: masked-scores-in-softmax
    return scores.softmax(dim=-1) @ values


class Basket(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.query = nn.Embedding(ITEMS + 1, WIDTH), nn.Parameter(0.1 * torch.randn(1, 1, WIDTH))
        self.keys, self.values, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2)

    def forward(self, basket):
        items = self.items(basket)
        query = self.query.expand(len(basket), -1, -1)
        keep = (basket != 0).unsqueeze(1)
        return self.head(attend(query, self.keys(items), self.values(items), keep).squeeze(1))


model = Basket()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(700).split(50):
        optimizer.zero_grad()
        F.cross_entropy(model(baskets[rows]), labels[rows]).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print("right", (model(baskets[700:]).argmax(1) == labels[700:]).float().mean().item())
