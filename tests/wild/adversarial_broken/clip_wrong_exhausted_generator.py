"""params is a generator: the optimizer uses it up, the clip gets nothing."""
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
params = (p for p in model.parameters() if p.requires_grad)
optimizer = torch.optim.AdamW(params, lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(80, 8), torch.randint(0, 2, (80,))), batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)  # error: clip-wrong-parameters
        optimizer.step()
    print(epoch, loss.item())
