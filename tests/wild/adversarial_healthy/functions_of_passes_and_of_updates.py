"""Schedules by functions, in their own unit: passes converted to updates, an early plateau, a quick decay."""

import math

import torch

torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randn(320, 1))
batches = torch.utils.data.DataLoader(data, 32, shuffle=True)
rounds = 10
total, per_pass, warm_up, floor = rounds * len(batches), len(batches), 3, 0.05


def converted(passes):
    """Return a cosine over all updates, read once per pass."""
    return 0.5 * (1 + math.cos(math.pi * passes * per_pass / total))


def quick(passes):
    """Return a line that ends early at a floor."""
    return max(floor, 1 - passes / warm_up)


def train(factor, each):
    net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    for _ in range(rounds):
        for given, wanted in batches:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(given), wanted).backward()
            optimizer.step()
            if each:
                schedule.step()
        if not each:
            schedule.step()
    return net


train(converted, each=False)
train(quick, each=False)
train(lambda done: min((done + 1) / 20, 1 - done / (total + 1)), each=True)
