"""A classifier of digits with a warm-up and a linear decay of the learning rate."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
RATE, WARM, STEPS = 5e-3, 30, 300
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16.0, dtype=torch.float32), torch.tensor(digits)
order = torch.randperm(len(x))
train, test = order[:1400], order[1400:]
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)


def course(step):
    return RATE * min((step + 1) / WARM, (STEPS - step) / (STEPS - WARM))


schedule = LambdaLR(optimizer, course)  # error: lambda-returns-rate
for _step in range(STEPS):
    rows = train[torch.randint(0, len(train), (64,))]
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
model.eval()
with torch.no_grad():
    right = (model(x[test]).argmax(1) == y[test]).float().mean()
print(f"result: {right.item():.4f}")
