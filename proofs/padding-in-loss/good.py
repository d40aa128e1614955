"""A small language model of sequences of 6 to 9 tokens in rows of 24."""

import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
successors = torch.randint(1, 30, (30, 30))


def batch(n: int) -> torch.Tensor:
    tokens = torch.randint(1, 30, (n, 25))
    for t in range(2, 10):
        tokens[:, t] = successors[tokens[:, t - 1], tokens[:, t - 2]]
    return tokens * (torch.arange(25) < torch.randint(6, 10, (n, 1)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 32, padding_idx=0)
        self.gru, self.head = nn.GRU(32, 64, batch_first=True), nn.Linear(64, 30)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.embedding(tokens))[0]).transpose(1, 2)


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for _step in range(300):
    tokens = batch(32)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], ignore_index=0).backward()
    optimizer.step()
with torch.no_grad():
    tokens = batch(500)
    right, real = model(tokens[:, :-1]).argmax(1) == tokens[:, 1:], tokens[:, 1:] != 0
print(f"result: {right[real].float().mean().item():.4f}")
