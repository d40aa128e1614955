"""For each bracket in a string: how deep does it stand? Multi-head attention written from scratch."""

import torch
from torch import nn

torch.manual_seed(9)
gen = torch.Generator().manual_seed(9)
T, MAX_DEPTH = 14, 5


def make(n):
    x = torch.zeros(n, T, dtype=torch.long)
    depth = torch.zeros(n, dtype=torch.long)
    y = torch.zeros(n, T, dtype=torch.long)
    for t in range(T):
        opening = torch.rand(n, generator=gen) < 0.5
        opening = (opening | (depth == 0)) & (depth < MAX_DEPTH)
        depth = depth + torch.where(opening, 1, -1)
        x[:, t] = opening.long()
        y[:, t] = depth
    return x, y


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with several heads, looking backwards only."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def split_heads(self, x):
        b, t, _ = x.shape
        return x.view(b, t, self.n_heads, self.d_head).transpose(1, 2)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.split_heads(self.w_q(x)), self.split_heads(self.w_k(x)), self.split_heads(self.w_v(x))
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, float("-inf")).softmax(dim=-1)
        context = (weights @ v).transpose(1, 2).contiguous().view(b, t, d)
        return self.w_o(context)


class DepthModel(nn.Module):
    """Embedding, attention, feed forward."""

    def __init__(self, d=32):
        super().__init__()
        self.emb = nn.Embedding(2, d)
        self.pos = nn.Parameter(0.1 * torch.randn(T, d))
        self.mha = MultiHeadAttention(d, 4)
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, MAX_DEPTH + 1))

    def forward(self, x):
        h = self.emb(x) + self.pos
        return self.ff(self.norm(h + self.mha(h)))


x_train, y_train = make(1200)
x_val, y_val = make(300)
model = DepthModel()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(7):
    model.train()
    for idx in torch.randperm(len(x_train)).split(60):
        out = model(x_train[idx])
        loss = ce(out.flatten(0, 1), y_train[idx].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = ce(out.flatten(0, 1), y_val.flatten())
        acc = (out.argmax(-1) == y_val).float().mean()
    print(f"{epoch:02d} loss {loss.item():.4f} val {val_loss.item():.4f} acc {acc.item():.4f}")
