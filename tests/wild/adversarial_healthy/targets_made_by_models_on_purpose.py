"""Targets that models make: pseudo-labels, teachers, averages, two views, codes, target networks, adaptation."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def mlp(wide, out):
    return nn.Sequential(nn.Linear(wide, 24), nn.ReLU(), nn.Linear(24, out))


def train(parts, loss_of, steps=40, lr=2e-3, after=None):
    optimizer = torch.optim.Adam([p for part in parts for p in part.parameters()], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
        if after is not None:
            after()


# Labels first; then pseudo-labels of sure samples beside labels; then the model's own classes on other data.
net = mlp(6, 3)


def labelled():
    x = torch.randn(48, 6)
    return F.cross_entropy(net(x), x[:, :3].argmax(1))


def pseudo():
    x, more = torch.randn(48, 6), torch.randn(48, 6)
    out = net(more)
    sure, guess = out.softmax(1).max(1)
    keep = sure > 0.6
    loss = F.cross_entropy(net(x), x[:, :3].argmax(1))
    return loss + 0.1 * F.cross_entropy(out[keep], guess[keep]) if keep.sum() > 1 else loss


def own_classes():
    out = net(torch.randn(48, 6) + 0.3)
    return F.cross_entropy(out, out.detach().argmax(1))


train([net], labelled)
train([net], pseudo)
train([net], own_classes, steps=12, lr=1e-4)

# A student of a teacher, and of the average of itself.
student, average = mlp(6, 3), mlp(6, 3)
average.load_state_dict(student.state_dict())


def of_teacher():
    x = torch.randn(48, 6)
    with torch.no_grad():
        goal = net(x)
    return F.kl_div(student(x).log_softmax(1), goal.softmax(1), reduction="batchmean")


def of_average():
    x = torch.randn(48, 6)
    with torch.no_grad():
        goal = average(x + 0.1 * torch.randn_like(x))
    return F.mse_loss(student(x), goal)


def follow():
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), student.parameters(), strict=True):
            slow.lerp_(fast, 0.01)


train([student], of_teacher)
train([student], of_average, after=follow)

# Two views, each with the other one's projection as its target.
encoder, predictor = mlp(6, 8), mlp(8, 8)


def two_views():
    x = torch.randn(48, 6)
    one, two = encoder(x + 0.2 * torch.randn_like(x)), encoder(x + 0.2 * torch.randn_like(x))
    return F.mse_loss(predictor(one), two.detach()) + F.mse_loss(predictor(two), one.detach())


train([encoder, predictor], two_views)

# Codes with a commitment, and rounding with a gradient straight through.
down, up, codes = nn.Linear(6, 4), nn.Linear(4, 6), nn.Embedding(16, 4)


def quantised():
    x = torch.randn(48, 6)
    z = down(x)
    q = codes(torch.cdist(z, codes.weight).argmin(1))
    through = z + (q - z).detach()
    return F.mse_loss(up(through), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())


train([down, up, codes], quantised)
binary, read = nn.Linear(6, 8), nn.Linear(8, 6)


def rounded():
    x = torch.randn(48, 6)
    chance = binary(x).sigmoid()
    bit = chance + (chance.round() - chance).detach()
    return F.mse_loss(read(bit), x) + 0.01 * F.mse_loss(chance, chance.detach().round())


train([binary, read], rounded)

# Values with those of a frozen copy, which is renewed.
critic = mlp(6, 4)
frozen = copy.deepcopy(critic)
renewals = iter(range(1000))


def bellman():
    x, following, action = torch.randn(48, 6), torch.randn(48, 6), torch.randint(4, (48,))
    with torch.no_grad():
        goal = x[:, 0] + 0.9 * frozen(following).amax(1)
    return F.smooth_l1_loss(critic(x).gather(1, action[:, None]).squeeze(1), goal)


def renew():
    if next(renewals) % 10 == 0:
        frozen.load_state_dict(critic.state_dict())


train([critic], bellman, after=renew)
