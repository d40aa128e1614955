"""Broken: no DataLoader; each epoch validates on slices that are freed after their call, and never sets eval mode."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(400, 12)
y = (x[:, :4].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(5):
    model.train()
    for rows in torch.randperm(300).split(50):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    right = 0
    with torch.no_grad():
        for rows in torch.arange(300, 400).split(25):
            right += (model(x[rows]).argmax(1) == y[rows]).sum().item()  # error: eval-mode-missing
    print(f"epoch {epoch}: {right / 100:.2f}")
