# says: `model.embed` has the rows 0 to 99 and was asked for row 100
# says: at least 101 rows
import torch
from torch import nn


class Text(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 8)  # related
        self.out = nn.Linear(8, 2)

    def forward(self, tokens):
        x = self.embed(tokens)  # died: index-outside-of-table
        return self.out(x.mean(1))


model = Text(100)
ids = torch.tensor([[1, 2, 100]])  # related
model(ids)
