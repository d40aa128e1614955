"""Adversarial training (FGSM) on two moons with nuisance features."""

import torch
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(31)
EPSILON = 0.25

points, labels = make_moons(1200, noise=0.15, random_state=31)
x = torch.cat([torch.tensor(points, dtype=torch.float32), 0.3 * torch.randn(1200, 10)], dim=1)
y = torch.tensor(labels, dtype=torch.float32)
x[:, 2] += 0.12 * (2 * y - 1)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.4, random_state=31)


def fgsm(model, x, y, eps):
    x = x.clone().requires_grad_(True)
    loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
    (grad,) = torch.autograd.grad(loss, x)
    return (x + eps * grad.sign()).detach()


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return ((model(x).squeeze(1) > 0) == y.bool()).float().mean().item()


model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(1, 41):
    model.train()
    seen = []
    for idx in torch.randperm(len(x_train)).split(60):
        xb, yb = x_train[idx], y_train[idx]
        xb_adv = fgsm(model, xb, yb, EPSILON)
        loss = 0.5 * loss_fn(model(xb).squeeze(1), yb) + 0.5 * loss_fn(model(xb_adv).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    if epoch % 10 == 0:
        print(f"epoch {epoch} loss {sum(seen) / len(seen):.4f}")

model.eval()
x_step = x_test.clone().requires_grad_(True)
(direction,) = torch.autograd.grad(loss_fn(model(x_step).squeeze(1), y_test), x_step)
x_attack = (x_test + EPSILON * direction.sign()).detach()
print(f"clean accuracy {evaluate(model, x_test, y_test):.4f}")
print(f"accuracy under attack {evaluate(model, x_attack, y_test):.4f}")
