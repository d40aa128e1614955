"""Labels that are equal by design, and weights of classes of many kinds."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def mlp(wide, out):
    return nn.Sequential(nn.Linear(wide, 24), nn.ReLU(), nn.Linear(24, out))


def train(parts, loss_of, steps=60, lr=2e-3):
    optimizer = torch.optim.Adam([p for part in parts for p in part.parameters()], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()


# Contrastive: the positive pair is in column 0.
encoder = mlp(6, 8)
queue = F.normalize(torch.randn(32, 8), dim=1)


def momentum_contrast():
    x = torch.randn(64, 6)
    one, two = (F.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2))
    logits = torch.cat([(one * two).sum(1, keepdim=True), one @ queue.t()], dim=1) / 0.1
    return F.cross_entropy(logits, torch.zeros(64, dtype=torch.long))


train([encoder], momentum_contrast)

# Ranking: the right answer is the first of five; the better of two has the larger score.
scorer = mlp(6, 1)


def first_is_right():
    x = torch.randn(64, 5, 6)
    x[:, 0] += 1
    return F.cross_entropy(scorer(x).squeeze(-1), torch.zeros(64, dtype=torch.long))


def better():
    x = torch.randn(64, 6)
    gap = scorer(x + 0.5) - scorer(x)
    return F.binary_cross_entropy_with_logits(gap, torch.ones_like(gap))


train([scorer], first_is_right)
train([scorer], better)

# A discriminator gets both labels, its generator one.
generator, judge = mlp(4, 6), mlp(6, 1)
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for _ in range(50):
    fake = generator(torch.randn(64, 4))
    of_judge.zero_grad()
    real_loss = F.binary_cross_entropy_with_logits(judge(torch.randn(64, 6)), ones)
    fake_loss = F.binary_cross_entropy_with_logits(judge(fake.detach()), zeros)
    (real_loss + fake_loss).backward()
    of_judge.step()
    of_generator.zero_grad()
    F.binary_cross_entropy_with_logits(judge(fake), ones).backward()
    of_generator.step()

# An input that is moved towards one class of a trained classifier.
classifier = mlp(6, 4)


def classify():
    x = torch.randn(64, 6)
    return F.cross_entropy(classifier(x), x[:, :4].argmax(1))


train([classifier], classify)
delta = torch.zeros(64, 6, requires_grad=True)
moving = torch.optim.SGD([delta], lr=0.1)
x = torch.randn(64, 6)
for _ in range(60):
    moving.zero_grad()
    F.cross_entropy(classifier(x + delta), torch.full((64,), 2)).backward()
    moving.step()

# Rare labels; one class for a while; weights against the frequencies, of the effective number, of a background.
rare = mlp(6, 1)


def one_of_four_hundred():
    x = torch.randn(40, 6)
    label = (x[:, 0] > 2.8).float()
    return F.binary_cross_entropy_with_logits(rare(x).squeeze(1), label)


train([rare], one_of_four_hundred)
kinds = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 900, replacement=True)
points = torch.randn(900, 6) + 2 * torch.eye(3, 6)[kinds]
counts = torch.bincount(kinds).float()
effective = (1 - 0.999) / (1 - 0.999**counts)
for weight in (counts.sum() / counts, effective, torch.tensor([0.1, 1.0, 1.0]), torch.ones(3), counts.rsqrt()):
    net = mlp(6, 3)
    criterion = nn.CrossEntropyLoss(weight=weight)

    def weighted():
        rows = torch.randint(900, (64,))
        return criterion(net(points[rows]), kinds[rows])  # noqa: B023

    train([net], weighted)
for factor in (9.0, 1.0, 3.0):
    net = mlp(6, 1)

    def of_rare():
        rows = torch.randint(900, (64,))
        label = (kinds[rows] == 2).float()[:, None]
        return F.binary_cross_entropy_with_logits(net(points[rows]), label, pos_weight=torch.tensor(factor))  # noqa: B023

    train([net], of_rare)
