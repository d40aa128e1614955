"""Broken: an attention with several heads assigns zero to the scores of the padding, and flattens batch and heads."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
PLACES, WIDTH, HEADS = 12, 16, 4


def texts(count):
    lengths = torch.randint(2, PLACES + 1, (count, 1))
    tokens = torch.randint(1, 20, (count, PLACES)) * (torch.arange(PLACES) < lengths)
    return tokens, (tokens == 3).any(1).long()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def split(self, x):
        return x.view(len(x), PLACES, HEADS, -1).transpose(1, 2)

    def forward(self, x, padding):
        query, key, value = map(self.split, self.qkv(x).chunk(3, -1))
        scores = query @ key.transpose(2, 3) / 2
        scores[padding[:, None, None].expand_as(scores)] = 0
        weights = nn.functional.dropout(scores.flatten(0, 1).softmax(-1), 0.1, self.training)
        mixed = weights.unflatten(0, (-1, HEADS)) @ value
        return self.out(mixed.transpose(1, 2).reshape(len(x), PLACES, WIDTH))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attend, self.head = nn.Embedding(20, WIDTH), Attention(), nn.Linear(WIDTH, 2)

    def forward(self, tokens):
        padding = tokens == 0
        x = self.attend(self.embed(tokens), padding)
        keep = (~padding).float()[..., None]
        return self.head((x * keep).sum(1) / keep.sum(1))


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(80):
    tokens, kinds = texts(32)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens), kinds)
    loss.backward()  # error: masked-scores-in-softmax
    optimizer.step()
print(f"loss {loss.item():.3f}")
