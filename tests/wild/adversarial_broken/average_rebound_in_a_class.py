"""A class for the average of the weights; its step binds the variable of its loop; validated under another name."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class WeightAverage:
    def __init__(self, model, averaged, decay):
        self.decay, self.pairs = decay, (list(averaged.parameters()), list(model.parameters()))
        for mine, theirs in zip(*self.pairs):
            mine.data.copy_(theirs.data)

    @torch.no_grad()
    def step(self):
        own_params, params = self.pairs
        for own, param in zip(own_params, params):  # error: average-never-updated
            own = self.decay * own + (1 - self.decay) * param


def build():
    return nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 2))


def validate(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(1)
    x = torch.randn(500, 6)
    y = (x[:, 0] > x[:, 1]).long()
    student, second = build(), build().requires_grad_(False)
    average = WeightAverage(student, second, 0.95)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.2)
    for epoch in range(4):
        for rows in torch.randperm(400).split(20):
            optimizer.zero_grad()
            F.cross_entropy(student(x[rows]), y[rows]).backward()
            optimizer.step()
            average.step()
        print(validate(student, x[400:], y[400:]), validate(second, x[400:], y[400:]))


main()
