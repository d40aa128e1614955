"""A classifier of padded sequences that gets the mask of the padding, and averages over the others."""

import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
lengths = torch.randint(2, 24, (900,))
padding = torch.arange(24)[None] >= lengths[:, None]
tokens = torch.randint(1, 30, (900, 24)).masked_fill(padding, 0)
shares = ((tokens > 15).float()).sum(1) / lengths
labels = (shares > 0.5).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(30, 8), nn.Linear(8, 2)

    def forward(self, tokens, padding):
        kept = (~padding).float().unsqueeze(2)
        return self.head((self.embed(tokens) * kept).sum(1) / kept.sum(1))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(8):
    for rows in torch.randperm(600).split(30):
        optimizer.zero_grad()
        scores = model(tokens[rows], padding[rows])
        nn.functional.cross_entropy(scores, labels[rows]).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    right = model(tokens[600:], padding[600:]).argmax(1) == labels[600:]
print(f"result: {right.float().mean():.4f}")
