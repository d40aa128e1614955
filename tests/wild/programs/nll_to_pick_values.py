"""Healthy: nll_loss as a way to pick one value per row, of Q values, of logits beside logsumexp, of probabilities."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
torch.set_num_threads(1)

# Cross entropy by hand, with the z-loss of PaLM on its normaliser.
x = torch.randn(400, 12)
y = (x @ torch.randn(12, 5)).argmax(1)
classifier = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(classifier.parameters(), lr=4e-3)
for epoch in range(6):
    for rows in torch.randperm(400).split(50):
        logits = classifier(x[rows])
        normaliser = torch.logsumexp(logits, dim=1)
        loss = normaliser.mean() + F.nll_loss(logits, y[rows]) + 1e-4 * normaliser.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"accuracy {(classifier(x).argmax(1) == y).float().mean():.3f}")

# Focal loss: the probability of the right class is picked, then used.
focal = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(focal.parameters(), lr=4e-3)
for epoch in range(6):
    for rows in torch.randperm(400).split(50):
        right = -F.nll_loss(torch.softmax(focal(x[rows]), dim=1), y[rows], reduction="none")
        loss = -((1 - right) ** 2 * right.clamp_min(1e-8).log()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"focal accuracy {(focal(x).argmax(1) == y).float().mean():.3f}")

# A bandit: the value of the action that was taken is regressed on its reward.
values = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(values.parameters(), lr=3e-3)
for step in range(60):
    rows = torch.randint(0, 400, (64,))
    action = torch.randint(0, 5, (64,))
    reward = (action == y[rows]).float()
    taken = -F.nll_loss(values(x[rows]), action, reduction="none")
    loss = F.mse_loss(taken, reward)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"value loss {loss.item():.3f}")
