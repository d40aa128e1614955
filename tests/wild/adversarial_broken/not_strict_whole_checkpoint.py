"""The whole checkpoint is given to load_state_dict, not the weights in it; strict=False says nothing."""
import io

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(64, 5), torch.randint(0, 2, (64,))
for epoch in range(20):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
file = io.BytesIO()
torch.save({"epoch": epoch, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
file.seek(0)

tested = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2))
tested.load_state_dict(torch.load(file), strict=False)  # error: load-not-strict-silently
tested.eval()
with torch.no_grad():
    print((tested(x).argmax(1) == y).float().mean().item())
