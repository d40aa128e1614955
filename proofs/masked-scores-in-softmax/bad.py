import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.score = nn.Embedding(41, 32), nn.Linear(32, 1)
        self.head = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, tokens):
        x = self.token(tokens)
        scores = self.score(x).squeeze(2).masked_fill(tokens == 0, 0.0)  # error: masked-scores-in-softmax
        return self.head((scores.softmax(1).unsqueeze(2) * x).sum(1))


def texts(count, longest):
    """Texts of 2 to 12 words, padded to the longest; a text is of the kind that most of its words are of."""
    kinds, lengths = torch.randint(4, (count, 1)), torch.randint(2, 13, (count, 1))
    of_kind = torch.rand(count, longest) < 0.6
    words = torch.where(of_kind, kinds * 10 + torch.randint(10, (count, longest)), torch.randint(40, (count, longest)))
    return (words + 1).where(torch.arange(longest) < lengths, 0), kinds.squeeze(1)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(500):
    tokens, kinds = texts(64, 12)
    loss = F.cross_entropy(model(tokens), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
tokens, kinds = texts(2000, 200)
with torch.no_grad():
    print(f"result: {(model(tokens).argmax(1) == kinds).float().mean():.4f}")
