"""A teacher is trained in a function and freed; the student is distilled from another one, which was never trained."""
import torch
from torch import nn

torch.manual_seed(0)
W = torch.randn(10, 4)


def network(width):
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))


def steps(net, target, count):
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(count):
        x = torch.randn(64, 10)
        adam.zero_grad()
        nn.functional.cross_entropy(net(x), target(x)).backward()
        adam.step()


def teach(net):
    @torch.no_grad()
    def soft(x):
        return net(x).softmax(1)  # error: untrained-weights

    return soft


steps(network(64), lambda x: (x @ W).argmax(1), 100)
large, small = network(64), network(16)
steps(small, teach(large), 150)
x = torch.randn(500, 10)
print("right", (small(x).argmax(1) == (x @ W).argmax(1)).float().mean().item())
