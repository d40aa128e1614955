"""Attention to earlier steps only: the first row has none, and its scores are set to zero against NaN."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
series = torch.randn(600, 12, 4).cumsum(1)
series = (series - series.mean(dim=(0, 1))) / series.std(dim=(0, 1))
later = torch.ones(12, 12, dtype=torch.bool).triu()


class Earlier(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.inner = nn.Linear(4, size)
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))
        self.head = nn.Linear(size, 4)

    def forward(self, x):
        h = torch.relu(self.inner(x))
        scores = (self.q(h) @ self.k(h).transpose(1, 2) / 4).masked_fill(later, float("-inf"))
        scores = scores.masked_fill(later.all(-1, keepdim=True), 0.0)
        return self.head(h + scores.softmax(-1) @ self.v(h))


model = Earlier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(80):
    i = torch.randint(0, 500, (32,))
    loss = F.mse_loss(model(series[i])[:, 1:-1], series[i, 2:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
