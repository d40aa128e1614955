"""Cosines between words of a query and words of a document, whose vectors are normalised over the words."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(50, 16), nn.Linear(16, 16)

    def forward(self, ids):
        return F.normalize(self.out(self.words(ids)))  # error: softmax-wrong-dim


tower = Tower()
optimizer = torch.optim.Adam(tower.parameters(), lr=3e-3)
for step in range(80):
    documents = torch.randint(0, 50, (16, 9))
    queries = torch.stack([words[torch.randperm(9)[:4]] for words in documents])
    scores = torch.einsum("itd,jud->ijtu", tower(queries), tower(documents)).amax(3).sum(2)
    loss = F.cross_entropy(5 * scores, torch.arange(16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
