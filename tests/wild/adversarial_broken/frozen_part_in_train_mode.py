"""A part of a class is frozen after a first training, and the class sets all of itself to train mode."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Transfer(nn.Module):
    def __init__(self, body, width, classes):
        super().__init__()
        self.body, self.head = body, nn.Linear(width, classes)
        for parameter in self.body.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.head(self.body(x))


def fit(net, x, y, passes):
    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=5e-3)
    for _ in range(passes):
        net.train()  # error: frozen-statistics-move
        for rows in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            F.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


torch.manual_seed(5)
body = nn.Sequential(nn.Linear(6, 20), nn.BatchNorm1d(20), nn.ReLU())
x = torch.randn(320, 6)
print(fit(nn.Sequential(body, nn.Linear(20, 4)), x, x[:, :4].argmax(1), 3))
print(fit(Transfer(body, 20, 2), 2 * x + 1, (x[:, 4] > 0).long(), 3))
