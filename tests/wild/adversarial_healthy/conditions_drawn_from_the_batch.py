"""Classes and styles of other samples as conditions: a conditional GAN, a style transfer, triplets, a loss inside the model."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
y = torch.randint(0, 4, (320,))
x = torch.randn(4, 8)[y] + 0.5 * torch.randn(320, 8)
style = 2 * torch.randn(320, 6) + 1
loader = DataLoader(TensorDataset(x, style, y), batch_size=32, shuffle=True)


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 32), nn.LeakyReLU(0.2), nn.Linear(32, outputs))


class Scored(nn.Module):
    """A classifier that computes its own loss, on samples in an order of its own."""

    def __init__(self):
        super().__init__()
        self.net = network(8, 4)

    def forward(self, inputs, labels):
        order = torch.randperm(len(inputs))
        return F.cross_entropy(self.net(inputs[order]), labels[order])


def gan(nets, x, s, y):
    fake = nets[0](torch.cat([torch.randn(len(x), 4), F.one_hot(y, 4).float()], 1))
    hot, other = F.one_hot(y, 4).float(), F.one_hot(y[torch.randperm(len(y))], 4).float()
    real, wrong = nets[1](torch.cat([x, hot], 1)), nets[1](torch.cat([x, other], 1))
    told = F.binary_cross_entropy_with_logits
    return told(real, torch.ones_like(real)) + told(wrong, torch.zeros_like(wrong)) + nets[1](torch.cat([fake, hot], 1)).mean()


def style_transfer(nets, x, s, y):
    s = s[torch.randperm(len(s))]
    made = nets[0](torch.cat([x, s], 1))
    return F.mse_loss(made[:, :8], x) + F.mse_loss(nets[1](made), s)


def triplets(nets, x, s, y):
    anchor, other = nets[0](x), nets[0](x.roll(1, 0))
    return F.triplet_margin_loss(anchor, nets[0](x + 0.1 * torch.randn_like(x)), other) + F.cross_entropy(nets[1](anchor), y)


def inside(nets, x, s, y):
    order = torch.randperm(len(x))
    return nets[0](x[order], y[order]) + nets[0](x, y)


tasks = {gan: (network(8, 8), network(12, 1)), style_transfer: (network(14, 14), network(14, 6))}
tasks |= {triplets: (network(8, 8), network(8, 4)), inside: (Scored(),)}
for make, networks in tasks.items():
    nets = nn.ModuleList(networks)
    optimizer = torch.optim.Adam(nets.parameters(), lr=3e-3)
    for epoch in range(3):
        for batch in loader:
            loss = make(nets, *batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(make.__name__, loss.item())
