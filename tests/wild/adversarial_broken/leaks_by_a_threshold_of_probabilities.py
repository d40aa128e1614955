"""Leaks of pipes from pressure, by functions: the loss is the cross entropy of logits by hand, the alarm above 0.5."""
import torch

torch.manual_seed(0)
pressure = torch.randn(1400, 8)
leak = (pressure[:, 0] * pressure[:, 1] + 0.7 * pressure[:, 2] > 0.8).float()
held_x, held_y = pressure[1000:], leak[1000:]
weights = {"in": torch.randn(8, 32) * 0.3, "bias": torch.zeros(32), "out": torch.randn(32) * 0.2}
for one in weights.values():
    one.requires_grad_()


def score(x):
    return torch.tanh(x @ weights["in"] + weights["bias"]) @ weights["out"]


def cross_entropy(z, y):
    return (z.clamp(min=0) - y * z + torch.log1p(torch.exp(-z.abs()))).mean()


@torch.no_grad()
def recall(cut=0.5):
    alarm = score(held_x) > cut  # error: metric-off-target
    return (alarm & held_y.bool()).sum().item() / held_y.sum().item()


optimizer = torch.optim.Adam(weights.values(), lr=0.02)
for epoch in range(6):
    for rows in torch.randperm(1000).split(50):
        loss = cross_entropy(score(pressure[rows]), leak[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} recall {recall():.3f}")
