"""Healthy: rare words, new users, padding, frozen and foreign vectors, and a run that ends in its first pass."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Bag(nn.Module):
    def __init__(self, foreign):
        super().__init__()
        self.words = nn.Embedding(200, 16, padding_idx=0)
        self.frozen = nn.Embedding(200, 16).requires_grad_(False)
        self.foreign = nn.Embedding.from_pretrained(foreign, freeze=False)
        self.users = nn.Embedding(60, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, ids, user):
        x = self.words(ids) + 0.1 * self.frozen(ids) + self.foreign(ids)
        return self.out(x.mean(1) + 0.1 * self.users(user))


foreign = 0.5 * torch.randn(200, 16) + 0.1
model = Bag(foreign)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
sides = torch.randn(200)
for step in range(220):
    ids = torch.randint(1, 180, (32, 10))
    ids[torch.rand(32, 10) < 0.4] = 0
    loss = F.cross_entropy(model(ids, torch.randint(0, 54, (32,))), (sides[ids].sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            ids = torch.randint(1, 200, (100, 10))
            ids[torch.rand(100, 10) < 0.4] = 0
            print((model(ids, torch.randint(0, 60, (100,))).argmax(1) == (sides[ids].sum(1) > 0)).float().mean().item())

table = nn.Sequential(nn.Embedding(5000, 8), nn.Flatten(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
for step in range(40):
    pairs = torch.randint(0, 5000, (32, 2))
    loss = F.mse_loss(table(pairs).squeeze(1), (pairs[:, 0] > pairs[:, 1]).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    pairs = torch.randint(0, 5000, (100, 2))
    print(F.mse_loss(table(pairs).squeeze(1), (pairs[:, 0] > pairs[:, 1]).float()).item())
