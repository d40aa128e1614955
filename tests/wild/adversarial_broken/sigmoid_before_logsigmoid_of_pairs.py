"""Word vectors with negative samples: the scores are probabilities before the log-sigmoid of the loss."""
import torch
from torch import nn
from torch.nn import functional as F


class Pairs(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.centre, self.context = nn.Embedding(words, 12), nn.Embedding(words, 12)

    def forward(self, centre, context):
        return torch.sigmoid((self.centre(centre) * self.context(context)).sum(-1))


torch.manual_seed(0)
centres = torch.randint(0, 50, (600,))
contexts = (centres + torch.randint(1, 4, (600,))) % 50
pairs = Pairs(50)
optimizer = torch.optim.Adam(pairs.parameters(), lr=0.02)
for epoch in range(8):
    for batch in torch.randperm(600).split(40):
        negative = torch.randint(0, 50, (len(batch),))
        positive = F.logsigmoid(pairs(centres[batch], contexts[batch]))
        loss = -(positive + F.logsigmoid(-pairs(centres[batch], negative))).mean()
        optimizer.zero_grad()
        loss.backward()  # error: sigmoid-before-bce-with-logits
        optimizer.step()
print(loss.item())
