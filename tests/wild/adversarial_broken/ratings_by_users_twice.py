"""Ratings from pairs of numbers in one tensor: both tables are read at the first column."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
pairs = torch.stack([torch.randint(0, 40, (1200,)), torch.randint(0, 60, (1200,))], 1)
scores = (torch.randn(40, 3)[pairs[:, 0]] * torch.randn(60, 3)[pairs[:, 1]]).sum(1)


class Ratings(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.film = nn.Embedding(40, 6), nn.Embedding(60, 6)
        self.shift = nn.Embedding(60, 1)
        self.user.weight.data.mul_(0.3)
        self.film.weight.data.mul_(0.3)

    def forward(self, pairs):
        user, film = pairs[:, 0], pairs[:, 0]
        u, v = self.user(user), self.film(film)  # error: embedding-reads-wrong-rows
        return (u * v).sum(1) + self.shift(film).squeeze(1)


model = Ratings()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
train = DataLoader(TensorDataset(pairs[:1000], scores[:1000]), batch_size=50, shuffle=True)
for epoch in range(5):
    for batch, wanted in train:
        loss = (model(batch) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, (model(pairs[1000:]) - scores[1000:]).square().mean().item())
