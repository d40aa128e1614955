"""Words are reversed; the first padding ends them, and the mask of the loss includes it."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
torch.manual_seed(0)
class S2S(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(12, 16)
        self.enc, self.dec = nn.GRU(16, 40, batch_first=True), nn.GRU(16, 40, batch_first=True)
        self.o = nn.Linear(40, 12)
    def forward(self, src, inp):
        _, h = self.enc(self.e(src))
        return self.o(self.dec(self.e(inp), h)[0])
net = S2S()
opt = torch.optim.Adam(net.parameters(), 5e-3)
for step in range(120):
    words = [torch.randint(1, 11, (int(torch.randint(3, 10, ())),)) for _ in range(32)]
    src = pad_sequence([torch.cat([w, w.new_zeros(1)]) for w in words], batch_first=True)
    tgt = pad_sequence([torch.cat([w.flip(0), w.new_zeros(1)]) for w in words], batch_first=True)
    inp = torch.cat([tgt.new_full((len(tgt), 1), 11), tgt[:, :-1]], 1)
    lengths = torch.tensor([len(w) for w in words])
    each = nn.functional.cross_entropy(net(src, inp).transpose(1, 2), tgt, reduction="none")
    mask = torch.arange(tgt.shape[1]) <= lengths[:, None]
    loss = (each * mask).sum() / mask.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
