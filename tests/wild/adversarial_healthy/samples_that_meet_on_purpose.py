"""Models in which samples of a batch meet on purpose: prototypes of a support set, attention between samples, the spread
of a batch for a discriminator, negatives from neighbours, and a graph of neighbours."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
centres = torch.randn(30, 8) * 2


class Prototypes(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        z = self.embed(x)
        prototypes = z[:10].view(5, 2, -1).mean(1)
        return -torch.cdist(z[10:], prototypes)


class Between(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.keys, self.head = nn.Linear(8, 32), nn.Linear(32, 32), nn.Linear(32, 30)

    def forward(self, x):
        h = torch.relu(self.embed(x))
        near = (self.keys(h) @ h.t() / 32**0.5).softmax(-1)
        return self.head(h + near @ h)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 32), nn.Linear(33, 1)

    def forward(self, x):
        h = torch.relu(self.body(x))
        spread = h.std(0).mean().expand(len(h), 1)
        return self.head(torch.cat([h, spread], 1)).squeeze(1)


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.score = nn.Linear(8, 16), nn.Linear(32, 1)

    def forward(self, x):
        z = torch.relu(self.embed(x))
        other = z.roll(1, 0)
        return self.score(torch.cat([z, other], 1)).squeeze(1)


class Neighbours(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 32), nn.Linear(32, 30)

    def forward(self, x):
        near = torch.cdist(x, x).topk(3, largest=False).indices
        h = torch.relu(self.one(x))
        return self.two(h[near].mean(1))


def episode():
    ways = torch.randperm(30)[:5].repeat_interleave(2)
    return torch.cat([centres[ways] + torch.randn(10, 8), centres[ways] + torch.randn(10, 8)])


def train(model, draw, loss_of):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        x, y = draw()
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(type(model).__name__, loss.item())


def drawn():
    y = torch.randint(0, 30, (24,))
    return centres[y] + torch.randn(24, 8), y


def judged():
    y = torch.randint(0, 2, (24,)).float()
    return centres[torch.randint(0, 30, (24,))] + y[:, None] * torch.randn(24, 8), y


train(Prototypes(), lambda: (episode(), torch.arange(5).repeat_interleave(2)), F.cross_entropy)
train(Between(), drawn, F.cross_entropy)
train(Critic(), judged, F.binary_cross_entropy_with_logits)
train(Contrast(), judged, F.binary_cross_entropy_with_logits)
train(Neighbours(), drawn, F.cross_entropy)
