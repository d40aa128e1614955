"""Only the head is in the optimizer; the clip is given all parameters of the model."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
backbone = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(6)])
model = nn.Sequential(backbone, nn.Linear(16, 3))
for p in backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(model[1].parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(torch.randn(96, 16), torch.randint(0, 3, (96,))), batch_size=16, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
