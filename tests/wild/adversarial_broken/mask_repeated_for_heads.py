"""A mask that is repeated for the heads sample by sample, while the heads of a sample lie together."""
import torch
from torch import nn

torch.manual_seed(4)
torch.set_num_threads(1)
T, SIZE, HEADS = 10, 16, 2
lengths = torch.randint(3, T, (600,))
x = torch.randn(600, T, 6)
real = torch.arange(T) < lengths[:, None]
y = ((x[..., 0] * real).sum(1) > 0).long()
x = torch.where(real.unsqueeze(2), x, torch.full((), 3.0))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, SIZE)
        self.q, self.k, self.v = (nn.Linear(SIZE, SIZE) for _ in range(3))
        self.head = nn.Linear(SIZE, 2)

    def split(self, z):
        return z.view(len(z), T, HEADS, -1).transpose(1, 2).reshape(len(z) * HEADS, T, -1)

    def forward(self, x, real):
        h = torch.relu(self.inner(x))
        scores = self.split(self.q(h)) @ self.split(self.k(h)).transpose(1, 2)
        mask = real.repeat(HEADS, 1)  # error: batch-changes-output
        scores = scores.masked_fill(~mask.unsqueeze(1), -1e9)
        mixed = scores.softmax(-1) @ self.split(self.v(h))
        return self.head(mixed.view(len(x), HEADS, T, -1).transpose(1, 2).reshape(len(x), T, SIZE)[:, 0])


model = Attention()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(90):
    i = torch.randint(0, 500, (32,))
    loss = nn.functional.cross_entropy(model(x[i], real[i]), y[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(loss.item(), (model(x[500:], real[500:]).argmax(1) == y[500:]).float().mean().item())
