"""Model surgery: Net2Wider and Net2Deeper keep the function, new optimizers follow, heads are swapped, BatchNorm is folded."""
import copy
import torch
import torch.nn as nn
from torch.nn.utils.fusion import fuse_linear_bn_eval

torch.manual_seed(4)
X = torch.randn(600, 6)
Y = ((X[:, :2] ** 2).sum(1) > X[:, 2:].sum(1)).long()
tr, va = slice(0, 450), slice(450, 600)


def fit(net, epochs, lr):
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    for _ in range(epochs):
        net.train()
        for b in torch.randperm(450).split(50):
            opt.zero_grad(set_to_none=False)
            nn.CrossEntropyLoss()(net(X[tr][b]), Y[tr][b]).backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        return round((net(X[va]).argmax(1) == Y[va]).float().mean().item(), 3)


def wider(a, b, width):
    extra = torch.randint(0, a.out_features, (width - a.out_features,))
    index = torch.cat([torch.arange(a.out_features), extra])
    count = torch.bincount(index).float()
    na, nb = nn.Linear(a.in_features, width), nn.Linear(width, b.out_features)
    with torch.no_grad():
        na.weight.copy_(a.weight[index]), na.bias.copy_(a.bias[index])
        nb.weight.copy_(b.weight[:, index] / count[index]), nb.bias.copy_(b.bias)
        nb.weight.add_(1e-3 * torch.randn_like(nb.weight))
    return na, nb


def deeper(width):
    layer = nn.Linear(width, width)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(width)), layer.bias.zero_()
    return layer


net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
print("small", fit(net, 6, 1e-2))
net[0], net[2] = wider(net[0], net[2], 24)
with torch.no_grad():
    print("wider keeps", round((net(X[va]).argmax(1) == Y[va]).float().mean().item(), 3))
print("wider", fit(net, 6, 5e-3))
net = nn.Sequential(net[0], nn.ReLU(), deeper(24), nn.ReLU(), net[2])
print("deeper", fit(net, 6, 3e-3))
bn = nn.Sequential(net[0], nn.BatchNorm1d(24), nn.ReLU(), copy.deepcopy(net[4]))
print("with batch norm", fit(bn, 4, 3e-3))
folded = nn.Sequential(fuse_linear_bn_eval(bn[0], bn[1]), nn.ReLU(), bn[3])
with torch.no_grad():
    print("folded difference", f"{(folded(X[va]) - bn(X[va])).abs().max().item():.1e}")
print("fine-tuned folded", fit(folded, 2, 1e-3))
