"""DARTS-like bilevel search, first order: architecture logits on validation batches, weights on training batches, then a discrete network."""
import torch
from torch import nn
from torch.nn import functional as F


class MixedOp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ops = nn.ModuleList([
            nn.Identity(),
            nn.Sequential(nn.Linear(width, width), nn.ReLU()),
            nn.Sequential(nn.Linear(width, width), nn.Tanh()),
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()),
        ])

    def forward(self, x, weights):
        return sum(w * op(x) for w, op in zip(weights, self.ops))


class SuperNet(nn.Module):
    def __init__(self, width=16, depth=2):
        super().__init__()
        self.stem, self.head = nn.Linear(2, width), nn.Linear(width, 2)
        self.cells = nn.ModuleList(MixedOp(width) for _ in range(depth))
        self.alphas = nn.Parameter(1e-3 * torch.randn(depth, 4))

    def weights(self):
        return [p for n, p in self.named_parameters() if n != "alphas"]

    def forward(self, x):
        h = self.stem(x)
        for cell, mix in zip(self.cells, F.softmax(self.alphas, dim=-1)):
            h = cell(h, mix)
        return self.head(h)


def rings(n):
    radius = torch.rand(n) * 2
    angle = torch.rand(n) * 2 * torch.pi
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return x, ((radius * 2).long() % 2)


torch.manual_seed(0)
x_train, y_train = rings(400)
x_valid, y_valid = rings(400)
x_test, y_test = rings(400)
net = SuperNet()
w_optimizer = torch.optim.SGD(net.weights(), lr=0.1, momentum=0.9, weight_decay=3e-4)
a_optimizer = torch.optim.Adam([net.alphas], lr=3e-3, betas=(0.5, 0.999), weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(w_optimizer, 30, eta_min=1e-3)
for epoch in range(30):
    for train_index, valid_index in zip(torch.randperm(400).split(80), torch.randperm(400).split(80)):
        a_optimizer.zero_grad()
        F.cross_entropy(net(x_valid[valid_index]), y_valid[valid_index]).backward()
        a_optimizer.step()

        w_optimizer.zero_grad()
        loss = F.cross_entropy(net(x_train[train_index]), y_train[train_index])
        loss.backward()
        nn.utils.clip_grad_norm_(net.weights(), 5.0)
        w_optimizer.step()
    scheduler.step()
choice = net.alphas.argmax(1).tolist()
print(f"search loss {loss.item():.3f} choice {choice}")

final = nn.Sequential(nn.Linear(2, 16), *(MixedOp(16).ops[c] for c in choice), nn.Linear(16, 2))
optimizer = torch.optim.Adam(final.parameters(), lr=1e-2)
for step in range(150):
    optimizer.zero_grad()
    F.cross_entropy(final(x_train), y_train).backward()
    optimizer.step()
with torch.no_grad():
    print("test accuracy of the chosen network", (final(x_test).argmax(1) == y_test).float().mean().item())
