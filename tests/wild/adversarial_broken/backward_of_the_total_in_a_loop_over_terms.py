"""The sum of two losses is differentiated once for each of them."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
body, digit, sign = nn.Sequential(nn.Linear(10, 24), nn.ReLU()), nn.Linear(24, 3), nn.Linear(24, 1)
x = torch.randn(240, 10)
loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1), (x[:, 3:] .sum(1) > 0).float()), batch_size=24, shuffle=True)
parts = nn.ModuleList([body, digit, sign])
optimizer = torch.optim.Adam(parts.parameters(), lr=3e-3)
for epoch in range(6):
    for inputs, kind, positive in loader:
        hidden = body(inputs)
        losses = [F.cross_entropy(digit(hidden), kind), F.binary_cross_entropy_with_logits(sign(hidden)[:, 0], positive)]
        total = sum(losses)
        optimizer.zero_grad()
        for _ in losses:
            total.backward(retain_graph=True)  # error: loss-differentiated-twice
        optimizer.step()
    print(epoch, [round(loss.item(), 4) for loss in losses])
