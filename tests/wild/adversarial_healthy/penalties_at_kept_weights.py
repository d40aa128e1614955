"""Penalties on the distance from kept weights that are zero at first: FedProx, EWC, weights of the start, a scalar at one."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector

torch.manual_seed(0)
x = torch.randn(320, 6)
goals = [x.sum(1, keepdim=True), 2 * x[:, :1] - x[:, 1:2]]


def network():
    return nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))


def federated(rounds=8, clients=4, local=2):
    """Each client begins at the weights of the server, and is held there; the live weights are kept for the report."""
    server = network()
    live = {name: weight.data for name, weight in server.named_parameters()}
    for _ in range(rounds):
        states = []
        for rows in torch.randperm(320).chunk(clients):
            client = copy.deepcopy(server)
            optimizer = torch.optim.SGD(client.parameters(), 0.05)
            for part in rows.chunk(local):
                loss = F.mse_loss(client(x[part]), goals[0][part])
                for mine, its in zip(client.parameters(), server.parameters(), strict=True):
                    loss = loss + 0.05 * (mine - its.detach()).pow(2).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            states.append(client.state_dict())
        server.load_state_dict({key: sum(one[key] for one in states) / clients for key in states[0]})
    print("federated", round(sum(one.norm().item() for one in live.values()), 3))


def consolidated(tasks=2):
    """After each task the weights are copied; a flat copy is kept too, of which views are compared."""
    net, kept, flat = network(), None, None
    for task in range(tasks):
        optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
        for epoch in range(3):
            for rows in torch.randperm(320).split(40):
                loss = F.mse_loss(net(x[rows]), goals[task][rows])
                if kept is not None:
                    loss = loss + 0.1 * sum((p - kept[n]).abs().sum() for n, p in net.named_parameters())
                    place = 0
                    for p in net.parameters():
                        old = flat[place : place + p.numel()].view_as(p)
                        loss, place = loss + 0.1 * (p - old).square().sum(), place + p.numel()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        kept = {n: p.detach().clone() for n, p in net.named_parameters()}
        flat = parameters_to_vector(net.parameters()).detach()
        print("task", task, round(loss.item(), 4))


class Scaled(nn.Module):
    """Its scale is held at one, where it begins; its bias is not used by the loss of the first steps."""

    def __init__(self):
        super().__init__()
        self.body, self.scale, self.shift = network(), nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))

    def forward(self, inputs):
        return self.body(inputs) * self.scale.mean() + self.shift.sum()


def from_the_start():
    net = Scaled()
    first = copy.deepcopy(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    for epoch in range(4):
        for rows in torch.randperm(320).split(40):
            loss = F.mse_loss(net(x[rows]), goals[0][rows])
            loss = loss + 0.01 * sum(F.mse_loss(p, first[n], reduction="sum") for n, p in net.named_parameters())
            loss = loss + 0.1 * (net.scale - 1).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("from the start", round(loss.item(), 4))


federated()
consolidated()
from_the_start()
