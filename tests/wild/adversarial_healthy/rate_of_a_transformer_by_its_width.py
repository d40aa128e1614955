"""The schedule of transformers with the root of the width in the optimizer: the peak of the factor is this root, too."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)
torch.set_num_threads(1)
WIDTH = WARM = 256
x = torch.randn(640, 10)
y = (x @ torch.randn(10, 4)).argmax(1)
model = nn.Sequential(nn.Linear(10, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=WIDTH**-0.5, betas=(0.9, 0.98))
schedule = LambdaLR(optimizer, lambda step: min((step + 1) ** -0.5, (step + 1) * WARM**-1.5))
for _ in range(40):
    for rows in torch.randperm(640).split(64):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
print(f"loss {loss.item():.3f}, rate {schedule.get_last_lr()[0]:.5f}")
