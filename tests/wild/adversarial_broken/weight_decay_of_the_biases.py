"""Parameter groups by the number of dimensions, with the comparison turned round: the biases decay, and the matrices do not."""

import torch
from torch import nn

torch.manual_seed(6)


def make_optimizer(model, decay=0.1, lr=2e-3):
    decayed = [p for p in model.parameters() if p.ndim < 2]
    other = [p for p in model.parameters() if p.ndim >= 2]
    groups = [{"params": decayed, "weight_decay": decay}, {"params": other, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr)  # error: optimizer-setting-out-of-range


model = nn.Sequential(nn.Linear(12, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 3))
optimizer = make_optimizer(model)
x = torch.randn(300, 12)
y = (x[:, :3] + 0.5 * torch.randn(300, 3)).argmax(1)
for epoch in range(5):
    for rows in torch.randperm(300).split(30):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss:.3f}")
