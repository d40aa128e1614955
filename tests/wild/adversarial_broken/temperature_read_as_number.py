"""A contrastive temperature beside the model: it is given to the optimizer, and used as a number."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
left, right = nn.Linear(10, 8), nn.Linear(6, 8)
log_scale = nn.Parameter(torch.zeros(()))
groups = [{"params": [*left.parameters(), *right.parameters()]}, {"params": [log_scale], "lr": 0.05}]
optimizer = torch.optim.AdamW(groups, lr=1e-2)  # error: parameters-without-effect
mixing = torch.randn(10, 6)
for step in range(80):
    a = torch.randn(32, 10)
    b = a @ mixing + 0.1 * torch.randn(32, 6)
    similarity = F.normalize(left(a), dim=1) @ F.normalize(right(b), dim=1).T
    loss = F.cross_entropy(similarity * float(log_scale.exp()), torch.arange(32))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f} scale {log_scale.exp().item():.3f}")
