"""Parameters of one dimension decay: gates with a price, and biases beside matrices that are pulled to their start."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 8)
y = (x[:, :3] + 0.3 * torch.randn(200, 3)).argmax(1)


class Gated(nn.Module):
    """Gates that fall to zero without a use; the matrices stay as they are."""

    def __init__(self):
        super().__init__()
        self.inputs, self.units = nn.Parameter(torch.ones(8)), nn.Parameter(torch.ones(16))
        self.first, self.last = nn.Linear(8, 16, bias=False), nn.Linear(16, 3, bias=False)

    def forward(self, x):
        return self.last(torch.relu(self.first(x * self.inputs)) * self.units)


def train(net, opt, penalty):
    for step in range(25):
        rows = torch.randint(200, (32,))
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows]) + penalty()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"{loss:.3f}")


net = Gated()
groups = [{"params": [net.inputs, net.units], "weight_decay": 0.1}, {"params": [net.first.weight, net.last.weight]}]
train(net, torch.optim.AdamW(groups, lr=1e-2, weight_decay=0.0), lambda: 0.0)
net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 3))
matrices = [p for p in net.parameters() if p.ndim > 1]
start = [p.detach().clone() for p in matrices]
groups = [{"params": [p for p in net.parameters() if p.ndim < 2], "weight_decay": 0.01}, {"params": matrices}]
pull = lambda: 0.01 * sum((p - s).square().sum() for p, s in zip(matrices, start))
train(net, torch.optim.SGD(groups, lr=0.1), pull)
