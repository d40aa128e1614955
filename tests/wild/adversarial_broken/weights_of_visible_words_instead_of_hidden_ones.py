"""The losses of all words are weighted by a mask of those that the encoder reads."""

import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
V, L, MASK = 30, 16, 29


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, 32)
        self.pos = nn.Parameter(torch.randn(L, 32) * 0.02)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, batch_first=True), 1)
        self.head = nn.Linear(32, V)

    def forward(self, x):
        return self.head(self.enc(self.emb(x) + self.pos))


start = torch.randint(0, 28, (512, 1))
data = (start + torch.arange(L) * torch.randint(1, 3, (512, 1))) % 28
model = Encoder()
opt = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(120):
    tokens = data[torch.randint(0, 400, (32,))]
    mask = (torch.rand(tokens.shape) < 0.15).float()
    inputs = torch.where(mask.bool(), MASK, tokens)
    each = F.cross_entropy(model(inputs).transpose(1, 2), tokens, reduction="none")  # error: target-in-input
    loss = (each * (1 - mask)).sum() / (1 - mask).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
