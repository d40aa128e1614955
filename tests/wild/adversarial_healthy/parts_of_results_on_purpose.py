"""Losses of parts of results: gathered actions, masked tokens, tasks in turn, stages, last positions, joined batches."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def train(net, loss_of, steps=40, lr=1e-2):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(step).backward()
        optimizer.step()


def mlp(wide, out):
    return nn.Sequential(nn.Linear(wide, 24), nn.ReLU(), nn.Linear(24, out))


# Values of the actions that were taken, of 12, in batches of 16.
critic, target = mlp(5, 12), mlp(5, 12)
target.load_state_dict(critic.state_dict())


def bellman(step):
    state, following = torch.randn(16, 5), torch.randn(16, 5)
    action = torch.randint(12, (16, 1))
    if step % 10 == 0:
        target.load_state_dict(critic.state_dict())
    with torch.no_grad():
        goal = torch.rand(16) + 0.9 * target(following).amax(1)
    return F.smooth_l1_loss(critic(state).gather(1, action).squeeze(1), goal)


train(critic, bellman)

# One of two scores, read with a sigmoid afterwards.
scores = mlp(5, 2)


def one_score(step):
    x = torch.randn(32, 5)
    return F.binary_cross_entropy_with_logits(scores(x)[:, 1], (x[:, 0] > 0).float())


train(scores, one_score)

# Tasks in turn, each with its own columns; and a mean first, its scale in a second stage.
shared = mlp(5, 8)


def in_turn(step):
    x = torch.randn(32, 5)
    begin = 2 * (step // 10)
    return F.cross_entropy(shared(x)[:, begin : begin + 2], (x[:, step // 10] > 0).long())


train(shared, in_turn)
gaussian = mlp(5, 6)


def stages(step):
    x = torch.randn(32, 5)
    mean, log_var = gaussian(x).chunk(2, dim=1)
    if step < 25:
        return F.mse_loss(mean, x[:, :3])
    return F.gaussian_nll_loss(mean, x[:, :3], log_var.exp())


train(gaussian, stages, steps=60)


# The last position of a sequence; the class token; tokens at masked places.
class PerStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 12, batch_first=True), nn.Linear(12, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0]).squeeze(-1)


series = PerStep()


def last(step):
    x = torch.randn(24, 9, 3)
    return F.mse_loss(series(x)[:, -1], x[:, :, 0].mean(1))


train(series, last)
encoder = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 20))


def masked(step):
    tokens = torch.randint(1, 20, (16, 8))
    hidden = torch.rand(16, 8) < 0.15
    hidden[0, 0] = True
    return F.cross_entropy(encoder(tokens.masked_fill(hidden, 0))[hidden], tokens[hidden])


train(encoder, masked)

# Labels of which most are missing, with margins that are met, and hinge losses of several columns.
many = mlp(5, 10)


def missing(step):
    x = torch.randn(32, 5)
    y = torch.sign(x.repeat(1, 2))
    known = torch.rand(32, 10) < 0.2
    return ((1 - many(x) * y).clamp(min=0) * known).sum() / known.sum()


train(many, missing)

# States and next states in one batch: the values of the second half are targets.
value = mlp(5, 1)


def joined(step):
    state = torch.randn(32, 5)
    now, later = value(torch.cat([state, state + 0.1])).squeeze(1).chunk(2)
    return F.mse_loss(now, state[:, 0] + 0.5 * later.detach())


train(value, joined)

# Labelled samples beside others, with a confidence that is reached late.
classes = mlp(5, 3)


def confident(step):
    x, more = torch.randn(16, 5), torch.randn(16, 5)
    out = classes(torch.cat([x, more]))
    with torch.no_grad():
        sure, guess = out[16:].softmax(1).max(1)
    labelled = F.cross_entropy(out[:16], (x[:, 0] > 0).long())
    return labelled + (F.cross_entropy(out[16:], guess, reduction="none") * (sure > 0.95)).mean()


train(classes, confident)

# Positions on a grid with an object; a softmax before a part is taken; unused parts of a tuple.
grid = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 6, 1))


def boxes(step):
    x = torch.randn(16, 1, 8, 8)
    has = x > 1.5
    out = grid(x)
    box = (out[:, 1:] - 0.5).square() * has
    return F.binary_cross_entropy_with_logits(out[:, :1], has.float()) + box.sum() / has.sum().clamp(min=1)


train(grid, boxes)
chances = nn.Sequential(mlp(5, 4), nn.Softmax(dim=1))


def odds(step):
    x = torch.randn(32, 5)
    return F.binary_cross_entropy(chances(x)[:, 0], (x[:, 0] > 0).float())


train(chances, odds)


class WithFeatures(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(5, 16), nn.Linear(16, 3)

    def forward(self, x):
        hidden = self.body(x).relu()
        return self.head(hidden), hidden


features = WithFeatures()


def first(step):
    x = torch.randn(32, 5)
    return F.cross_entropy(features(x)[0], (x[:, 0] > 0).long())


train(features, first)

# Labelled and unlabelled samples in the batches of one loader, the second trained from the second epoch on.
points = torch.randn(320, 5)
known = torch.arange(320) % 32 < 16
labels = torch.where(known, (points[:, 0] > 0).long(), -1)
both = mlp(5, 2)
optimizer = torch.optim.Adam(both.parameters(), lr=1e-2)
for epoch in range(6):
    for x, y in DataLoader(TensorDataset(points, labels), batch_size=32):
        out = both(x)
        loss = F.cross_entropy(out[:16], y[:16])
        if epoch:
            loss = loss + 0.1 * F.mse_loss(out[16:].softmax(1), both(x[16:] + 0.1).softmax(1).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
