"""Networks in plain lists of a module that its methods call: members with their own optimizers, learners by hand, a target."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(240, 5)
y = torch.sin(x.sum(1, keepdim=True))


def network():
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))


class Ensemble(nn.Module):
    """The members are trained one by one; the weights of their mean are trained by the module itself."""

    def __init__(self):
        super().__init__()
        self.members = [network() for _ in range(3)]
        self.optimizers = [torch.optim.Adam(one.parameters(), 5e-3) for one in self.members]
        self.mixing = nn.Parameter(torch.zeros(3))

    def update(self, rows):
        for member, optimizer in zip(self.members, self.optimizers, strict=True):
            loss = F.mse_loss(member(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def mixed(self, rows):
        with torch.no_grad():
            results = torch.cat([member(x[rows]) for member in self.members], dim=1)
        return (results * self.mixing.softmax(0)).sum(1, keepdim=True)


class Reptile(nn.Module):
    """A learner takes a few steps by hand, and the meta network moves towards it."""

    def __init__(self):
        super().__init__()
        self.meta = network()
        self.learners = [copy.deepcopy(self.meta) for _ in range(2)]

    def adapt(self, rows, rate=0.05):
        self.meta.zero_grad()
        for learner in self.learners:
            learner.load_state_dict(self.meta.state_dict())
            for _ in range(3):
                learner.zero_grad()
                F.mse_loss(learner(x[rows]), y[rows]).backward()
                with torch.no_grad():
                    for parameter in learner.parameters():
                        parameter -= rate * parameter.grad
            for mine, adapted in zip(self.meta.parameters(), learner.parameters(), strict=True):
                change = (mine - adapted).detach() / len(self.learners)
                mine.grad = change if mine.grad is None else mine.grad + change


class Critic(nn.Module):
    """The target is hidden in a list, so that no optimizer finds it, and follows slowly."""

    def __init__(self):
        super().__init__()
        self.value = network()
        self.target = [copy.deepcopy(self.value)]

    def loss(self, rows):
        goal = y[rows] + 0.5 * self.target[0](x[rows].roll(1, 1)).detach()
        return F.mse_loss(self.value(x[rows]), goal)

    @torch.no_grad()
    def follow(self):
        for slow, live in zip(self.target[0].parameters(), self.value.parameters(), strict=True):
            slow.lerp_(live, 0.05)


ensemble, reptile, critic = Ensemble(), Reptile(), Critic()
mixing = torch.optim.Adam(ensemble.parameters(), 1e-2)
outer = torch.optim.SGD(reptile.parameters(), 1.0)
optimizer = torch.optim.Adam(critic.parameters(), 5e-3)
for epoch in range(6):
    for rows in torch.randperm(200).split(40):
        ensemble.update(rows)
        loss = F.mse_loss(ensemble.mixed(rows), y[rows])
        mixing.zero_grad()
        loss.backward()
        mixing.step()

        outer.zero_grad()
        reptile.adapt(rows)
        outer.step()

        bootstrapped = critic.loss(rows)
        optimizer.zero_grad()
        bootstrapped.backward()
        optimizer.step()
        critic.follow()
    print(f"epoch {epoch}: {loss.item():.3f} {bootstrapped.item():.3f}")
with torch.no_grad():
    held_out = torch.arange(200, 240)
    print(f"held out {F.mse_loss(ensemble.mixed(held_out), y[held_out]):.3f} {F.mse_loss(reptile.meta(x[200:]), y[200:]):.3f}")
