"""Healthy: F.kl_div for R-Drop, for non-negative factorisation with masses above one, and with log targets."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)

x = torch.randn(384, 10)
y = (x @ torch.randn(10, 4)).argmax(1)
model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
model.train()
for epoch in range(5):
    for rows in torch.randperm(384).split(48):
        first, second = model(x[rows]), model(x[rows])
        p, q = F.log_softmax(first, dim=-1), F.log_softmax(second, dim=-1)
        agreement = F.kl_div(p, q, log_target=True, reduction="batchmean")
        agreement = agreement + F.kl_div(q, p.exp(), reduction="batchmean")
        loss = F.cross_entropy(first, y[rows]) + F.cross_entropy(second, y[rows]) + 0.5 * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"r-drop {epoch}: {loss.item():.3f}")

# Factorise counts: the generalised Kullback-Leibler divergence of masses, not of probabilities.
counts = torch.poisson(torch.rand(60, 3) @ torch.rand(3, 40) * 12) + 0.1
left = nn.Parameter(torch.randn(60, 3) * 0.1)
right = nn.Parameter(torch.randn(3, 40) * 0.1)
optimizer = torch.optim.Adam([left, right], lr=0.05)
for step in range(80):
    rebuilt = F.softplus(left) @ F.softplus(right)
    loss = F.kl_div(rebuilt.log(), counts, reduction="sum") + rebuilt.sum() - counts.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"divergence {loss.item():.1f}")
