"""Attention by hand on the readings of a sensor, with a softmax over the first dimension."""
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.out = nn.Linear(4, 16), nn.Linear(16, 1)
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        x = self.into(x)
        scores = self.q(x) @ self.k(x).transpose(1, 2) / 4
        weights = torch.softmax(scores, 0)  # error: softmax-wrong-dim
        return self.out(x + weights @ self.v(x)).mean(1)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(80):
    x = torch.randn(32, 7, 4)
    loss = nn.functional.mse_loss(net(x), x.amax(1)[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
