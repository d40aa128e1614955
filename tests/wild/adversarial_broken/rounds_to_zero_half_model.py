"""Fine-tuning a whole model in bfloat16 with the learning rate of a recipe for float32."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 16)
y = torch.randint(0, 4, (256,))
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4)).bfloat16()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 160)
for epoch in range(20):
    for rows in torch.randperm(256).split(32):
        logits = model(x[rows].bfloat16()).float()
        loss = nn.functional.cross_entropy(logits, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # error: update-rounds-to-zero
        scheduler.step()
