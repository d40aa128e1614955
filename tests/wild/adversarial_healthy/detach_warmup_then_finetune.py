"""The head warms up on detached features for three steps; then everything is trained by the same optimizer."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(6, 32), nn.ReLU()), nn.Linear(32, 3)
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(160, 6), torch.randint(0, 3, (160,))), batch_size=16, shuffle=True)
step = 0
for epoch in range(3):
    for x, y in loader:
        features = body(x)
        if step < 5:
            features = features.detach()
        loss = nn.functional.cross_entropy(head(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(epoch, loss.item())
