"""A tagger with sentences that end in the token of padding, which has a label too."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
torch.manual_seed(1)
def item():
    n = int(torch.randint(4, 15, ()))
    w = torch.randint(1, 40, (n,))
    prev = torch.cat([torch.zeros(1, dtype=torch.long), w[:-1]])
    return w, (w + (prev > 20)) % 4
def collate(batch):
    w, t = zip(*[(torch.cat([a, a.new_zeros(1)]), torch.cat([b, b.new_zeros(1)])) for a, b in batch])
    return pad_sequence(w, True, 0), pad_sequence(t, True, 0), torch.tensor([len(x) for x in w])
loader = DataLoader([item() for _ in range(500)], 25, shuffle=True, collate_fn=collate)
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(40, 16, padding_idx=0)
        self.r = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.o = nn.Linear(48, 4)
    def forward(self, w):
        return self.o(self.r(self.e(w))[0])
class Trainer:
    def __init__(self):
        self.net = Tagger()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=5e-3)
        self.ce = nn.CrossEntropyLoss(reduction="none")
    def step(self, w, t, n):
        mask = torch.arange(w.shape[1])[None, :] < n[:, None]
        loss = self.ce(self.net(w).transpose(1, 2), t).masked_select(mask).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        return loss.item()
tr = Trainer()
for ep in range(4):
    print(ep, sum(tr.step(*b) for b in loader) / len(loader))
