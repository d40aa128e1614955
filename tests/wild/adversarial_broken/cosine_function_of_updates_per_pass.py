"""A function of the number of updates, in a closure, gets the number of passes."""

import math

import torch

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(640, 10), torch.randn(640, 1))


def with_warm_up(optimizer, warm_up, total):
    def factor(now):
        if now < warm_up:
            return (now + 1) / warm_up
        return 0.5 * (1 + math.cos(math.pi * (now - warm_up) / (total - warm_up)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def train(rounds=12):
    batches = torch.utils.data.DataLoader(data, 32, shuffle=True)
    net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    schedule = with_warm_up(optimizer, 2 * len(batches), rounds * len(batches))
    for _ in range(rounds):
        for given, wanted in batches:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(given), wanted).backward()
            optimizer.step()
        schedule.step()  # error: scheduler-wrong-cadence


train()
