"""The statistics are reset before each evaluation, and never computed again."""
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.outer = nn.Linear(5, 24), nn.BatchNorm1d(24), nn.Linear(24, 3)

    def forward(self, x):
        return self.outer(torch.relu(self.norm(self.inner(x))))


def accuracy(net, x, y):
    net.eval()
    net.norm.reset_running_stats()
    with torch.no_grad():
        scores = net(x)  # error: batchnorm-without-statistics
    net.train()
    return (scores.argmax(1) == y).float().mean().item()


def main():
    net, x = Net(), 2 + 3 * torch.randn(500, 5)
    y = x[:, :3].argmax(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        for rows in torch.randperm(400).split(40):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{accuracy(net, x[400:], y[400:]):.3f}")


main()
