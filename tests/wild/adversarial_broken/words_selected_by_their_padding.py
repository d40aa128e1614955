"""A language model in plain functions; the flattened scores of padding are selected for the loss."""

import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
PAD, BOS, EOS = 0, 1, 2
def sentence():
    n = int(torch.randint(3, 12, ()))
    a, d = int(torch.randint(0, 20, ())), int(torch.randint(1, 4, ()))
    return torch.tensor([BOS] + [3 + (a + d * i) % 20 for i in range(n)] + [EOS])
data = [sentence() for _ in range(400)]
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(23, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, 23)
    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])
model = LM()
opt = torch.optim.Adam(model.parameters(), 5e-3)
def loss_of(x, lengths):
    inp, tgt = x[:, :-1], x[:, 1:].reshape(-1)
    logits = model(inp).reshape(-1, 23)
    mask = tgt.eq(PAD)
    return F.cross_entropy(logits[mask], tgt[mask])  # error: padding-in-loss
for epoch in range(4):
    order = torch.randperm(len(data)).tolist()
    total = 0
    for i in range(0, 400, 25):
        batch = [data[j] for j in order[i:i + 25]]
        lengths = torch.tensor([len(b) for b in batch])
        x = nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
        loss = loss_of(x, lengths)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(epoch, total / 16)
