"""Attention with heads that are split off by a reshape without a transpose: each head reads pieces of several steps."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
steps = torch.randn(600, 10, 24)
labels = (steps[:, 2, 0] * steps[:, 7, 1] > 0).long()


class Heads(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))

    def forward(self, x):
        n, t, d = x.shape

        def split(z):
            return z.reshape(n, self.heads, t, d // self.heads)  # error: view-instead-of-permute

        mixed = F.scaled_dot_product_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)))
        return mixed.transpose(1, 2).flatten(2)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm, self.head = Heads(24, 3), nn.LayerNorm(24), nn.Linear(240, 2)

    def forward(self, x):
        return self.head(self.norm(x + self.attention(x)).flatten(1))


def main():
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(90):
        i = torch.randint(0, 500, (20,))
        loss = F.cross_entropy(model(steps[i]), labels[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            with torch.no_grad():
                print(step, loss.item(), (model(steps[500:]).argmax(1) == labels[500:]).float().mean().item())


main()
