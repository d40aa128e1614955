"""Attention of several heads with a softmax over the second dimension, which is that of the heads."""
import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
series = torch.randn(600, 9, 5).cumsum(1)
targets = series[:, -1, :1] - series[:, 3, 1:2]


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.softmax = nn.Softmax(dim=1)  # error: softmax-wrong-dim

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = self.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / (d // self.heads) ** 0.5)
        return self.out(torch.einsum("bhij,bhjd->bihd", weights, v).reshape(b, t, d))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.attention, self.head = nn.Linear(5, 16), Attention(16, 4), nn.Linear(16, 1)

    def forward(self, x):
        h = self.inner(x)
        return self.head(torch.relu(h + self.attention(h))[:, -1])


def train():
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(80):
        i = torch.randint(0, 500, (25,))
        loss = nn.functional.mse_loss(model(series[i]), targets[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(loss.item(), nn.functional.mse_loss(model(series[500:]), targets[500:]).item())


train()
