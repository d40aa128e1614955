"""Healthy: SGD and Adam driven through a closure; the step returns the loss."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_moons(n, noise=0.15):
    t = torch.rand(n) * torch.pi
    label = (torch.rand(n) < 0.5).long()
    pts = torch.stack([torch.cos(t), torch.sin(t)], 1)
    pts[label == 1] = torch.stack([1 - torch.cos(t), 0.5 - torch.sin(t)], 1)[label == 1]
    return (pts - torch.tensor([0.5, 0.25])) / 0.7 + noise * torch.randn(n, 2), label


def train(name, make_opt, steps=80):
    torch.manual_seed(0)
    x, y = make_moons(512)
    x_test, y_test = make_moons(256)
    net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
    opt = make_opt(net.parameters())

    for step in range(steps):
        idx = torch.randint(0, len(x), (64,))

        def closure():
            opt.zero_grad()
            loss = F.cross_entropy(net(x[idx]), y[idx])
            loss.backward()
            return loss

        loss = opt.step(closure)

    net.eval()
    with torch.no_grad():
        acc = (net(x_test).argmax(dim=1) == y_test).float().mean()
    print(f"{name}: last loss {loss.item():.4f}, test accuracy {acc.item():.4f}")


torch.set_num_threads(1)
train("sgd", lambda p: torch.optim.SGD(p, lr=0.2, momentum=0.9))
train("adam", lambda p: torch.optim.Adam(p, lr=1e-2))
