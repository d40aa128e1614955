"""Pictures with the levels of a scanner are scaled in one way; an evaluation changes them on purpose, beside a clean one."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(4)
labels = torch.arange(480) % 3
scans = (90 * torch.rand(480, 3, 8, 8).square()).long()
for row, label in enumerate(labels.tolist()):
    scans[row, label] += 120
scans[:, 2] //= 2
mean = torch.tensor([0.5, 0.4, 0.2]).view(3, 1, 1)
std = torch.tensor([0.2, 0.25, 0.3]).view(3, 1, 1)


def prepared(pictures):
    return (pictures / 255 - mean) / std


def build(width=8):
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, 3))


def fit(model, pictures, targets, change=lambda x: x, epochs=6):
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(pictures)).split(24):
            loss = F.cross_entropy(model(change(pictures[rows])), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def accuracy(model, pictures, targets):
    model.eval()
    with torch.no_grad():
        return (model(pictures).argmax(1) == targets).float().mean().item()


x, held = prepared(scans[:360]), prepared(scans[360:])
y, wanted = labels[:360], labels[360:]
model = build()
with torch.no_grad():
    print("dry run", model(torch.zeros(2, 3, 8, 8)).shape, model(torch.randn(2, 3, 8, 8)).shape)
fit(model, x, y)
print("clean", accuracy(model, held, wanted))
for label in range(3):
    chosen = wanted == label
    print("class", label, accuracy(model, held[chosen], wanted[chosen]))
for strength in (0.2, 0.4):
    print("contrast", strength, accuracy(model, strength * held, wanted))
model.eval()
with torch.no_grad():
    views = torch.stack([model(held), model(held.flip(3)), model(1.2 * held)]).softmax(2).mean(0)
    print("views", (views.argmax(1) == wanted).float().mean().item())
    print("single pictures", sum(model(one[None]).argmax().item() == target for one, target in zip(held, wanted.tolist())))
attacked = held.clone().requires_grad_()
F.cross_entropy(model(attacked), wanted).backward()
print("attacked", accuracy(model, (held + 0.1 * attacked.grad.sign()).detach(), wanted))

noisy = fit(build(), x, y, lambda part: part + 0.1 * torch.randn_like(part))
print("noise in training", accuracy(noisy, held, wanted))
mixed = fit(build(), x, y, lambda part: 0.8 * part + 0.2 * part.flip(0))
print("mixtures in training", accuracy(mixed, held, wanted))


def erased(part):
    part = part.clone()
    part[:, :, 2:4, 2:5] = 0
    return part


print("erased in training", accuracy(fit(build(), x, y, erased), held, wanted))

night = scans // 3 + 10
own = (night / 255 - (night / 255).mean((0, 2, 3), keepdim=True)) / (night / 255).std((0, 2, 3), keepdim=True)
print("another camera with its own statistics", accuracy(model, own[360:], wanted))
fit(model, own[:360], y, epochs=2)
print("tuned for it", accuracy(model, own[360:], wanted))

alone = (scans - scans.float().mean((1, 2, 3), keepdim=True)) / scans.float().std((1, 2, 3), keepdim=True)
print("each alone", accuracy(fit(build(), alone[:360], y, erased), alone[360:], wanted))

counts = (20 + torch.arange(600) // 12 + torch.poisson(torch.full((600,), 8.0))).float()
windows = ((counts - counts[:400].mean()) / counts[:400].std()).unfold(0, 17, 1)
series = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(series.parameters(), 1e-2)
for _ in range(6):
    for rows in torch.randperm(384).split(32):
        loss = F.mse_loss(series(windows[rows, :16]), windows[rows, 16:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
series.eval()
with torch.no_grad():
    print("drifted", F.mse_loss(series(windows[400:, :16]), windows[400:, 16:]).item())

points = torch.linspace(-1, 1, 160)[:, None]
curve = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(curve.parameters(), 1e-2)
for _ in range(20):
    for rows in torch.randperm(160).split(40):
        loss = F.mse_loss(curve(points[rows]), points[rows].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    wide = torch.linspace(-3, 3, 160)[:, None]
    print("extrapolated", F.mse_loss(curve(wide), wide.sin()).item())
