"""Tags of words: the loss leaves out padding, and the accuracy is that of all positions."""

import torch
from torch import nn

torch.manual_seed(4)
generator = torch.Generator().manual_seed(4)
words = torch.randint(1, 40, (300, 12), generator=generator)
lengths = torch.randint(4, 12, (300,), generator=generator)
words[torch.arange(12)[None] >= lengths[:, None]] = 0
tags = torch.where(words > 0, 1 + (words * 7 + words.roll(1, 1)) % 4, 0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 24, padding_idx=0)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, 5)

    def forward(self, tokens):
        return self.out(self.rnn(self.embedding(tokens))[0])


def share(net, rows):
    net.eval()
    with torch.no_grad():
        chosen = net(words[rows]).argmax(-1)
        return (chosen == tags[rows]).float().mean().item()  # error: metric-off-target


net = Tagger()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(8):
    net.train()
    for rows in torch.randperm(240).split(40):
        logits = net(words[rows])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags[rows].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{epoch} {share(net, slice(240, None)):.3f}")
