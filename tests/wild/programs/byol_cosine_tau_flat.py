"""BYOL as flat cells: predictor on the online branch only, target branch under no_grad in train mode, tau rising with a cosine."""
# %%
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
clusters = torch.randn(10, 20) * 1.5
def draw(n):
    c = torch.randint(0, 10, (n,))
    return clusters[c] + 0.4 * torch.randn(n, 20), c

# %%
online_encoder = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
online_projector = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
predictor = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
target_encoder, target_projector = copy.deepcopy(online_encoder), copy.deepcopy(online_projector)
for p in [*target_encoder.parameters(), *target_projector.parameters()]:
    p.requires_grad = False
online = [*online_encoder.parameters(), *online_projector.parameters()]
target = [*target_encoder.parameters(), *target_projector.parameters()]
optimizer = torch.optim.SGD([*online, *predictor.parameters()], lr=0.05, momentum=0.9, weight_decay=1e-4)

# %%
def regression_loss(p, z):
    return 2 - 2 * F.cosine_similarity(p, z, dim=1).mean()

total, history = 150, []
for step in range(total):
    x, _ = draw(64)
    v1, v2 = x + 0.3 * torch.randn_like(x), x * (torch.rand_like(x) > 0.2)
    p1 = predictor(online_projector(online_encoder(v1)))
    p2 = predictor(online_projector(online_encoder(v2)))
    with torch.no_grad():
        z1 = target_projector(target_encoder(v1))
        z2 = target_projector(target_encoder(v2))
    loss = regression_loss(p1, z2) + regression_loss(p2, z1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tau = 1 - 0.04 * (math.cos(math.pi * step / total) + 1) / 2
    with torch.no_grad():
        for t, o in zip(target, online):
            t.data = tau * t.data + (1 - tau) * o.data
    history.append(loss.item())
print("loss", sum(history[:10]) / 10, "->", sum(history[-10:]) / 10)

# %%
online_encoder.eval()
with torch.no_grad():
    bank, bank_labels = draw(400)
    query, query_labels = draw(200)
    bank, query = F.normalize(online_encoder(bank)), F.normalize(online_encoder(query))
    nearest = (query @ bank.T).argmax(1)
print("nearest neighbour accuracy", (bank_labels[nearest] == query_labels).float().mean().item())
