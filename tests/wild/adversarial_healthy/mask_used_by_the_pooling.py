"""A classifier of padded sequences that averages over the positions that are not padding."""

import torch
from torch import nn

torch.manual_seed(0)
lengths = torch.randint(3, 20, (400,))
tokens = torch.randint(1, 50, (400, 20))
padded = torch.arange(20)[None] >= lengths[:, None]
tokens[padded] = 0
labels = (tokens == 7).any(1).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.body, self.head = nn.Linear(16, 32), nn.Linear(32, 2)

    def forward(self, tokens, padding_mask):
        hidden = torch.relu(self.body(self.embed(tokens)))
        kept = (~padding_mask).float()[:, :, None]
        return self.head((hidden * kept).sum(1) / kept.sum(1))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(4):
    for rows in torch.randperm(400).split(25):
        logits = model(tokens[rows], padded[rows])
        loss = nn.functional.cross_entropy(logits, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
