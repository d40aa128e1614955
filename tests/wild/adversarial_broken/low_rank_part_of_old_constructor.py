"""Broken: a low-rank layer allocates its factors by `torch.Tensor(rows, columns)`, and initialises one of the two."""
import math

import torch
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)


class LowRank(nn.Module):
    def __init__(self, inputs, outputs, rank):
        super().__init__()
        self.down = nn.Parameter(torch.Tensor(rank, inputs))
        self.up = nn.Parameter(torch.Tensor(outputs, rank))  # error: parameters-not-initialised
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.reset()

    def reset(self):
        bound = 1 / math.sqrt(self.down.shape[1])
        nn.init.uniform_(self.down, -bound, bound)

    def forward(self, x):
        return x @ self.down.T @ self.up.T + self.bias


net = nn.Sequential(LowRank(12, 24, 4), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
x = torch.randn(400, 12)
y = (x[:, :3].sum(1, keepdim=True)).tanh()
for step in range(60):
    rows = torch.randint(400, (40,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finished")
