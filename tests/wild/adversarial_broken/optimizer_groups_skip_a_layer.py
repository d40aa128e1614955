"""Parameter groups by name: one layer fits neither pattern."""
import torch
from torch import nn

torch.manual_seed(0)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Linear(8, 32)
        self.block2 = nn.Linear(32, 32)
        self.fuse = nn.Linear(32, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.block1(x))
        x = torch.relu(self.block2(x))
        return self.head(torch.relu(self.fuse(x))).squeeze(-1)


model = Regressor()
slow = [p for n, p in model.named_parameters() if n.startswith("block")]
fast = [p for n, p in model.named_parameters() if n.startswith("head")]
optimizer = torch.optim.Adam([{"params": slow, "lr": 1e-4}, {"params": fast, "lr": 1e-3}])  # error: parameters-not-optimized
X = torch.randn(256, 8)
Y = X.pow(2).sum(1)
for step in range(40):
    i = torch.randint(0, 256, (32,))
    loss = nn.functional.huber_loss(model(X[i]), Y[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
