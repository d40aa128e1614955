"""Load of a grid, forecast from its past: closures, a recurrent network, windows cut in time, an error next to a naive one."""

import math

import torch
from torch import nn

PAST, AHEAD = 48, 6


def make_series(hours):
    t = torch.arange(hours, dtype=torch.float32)
    daily = 12 * torch.sin(2 * math.pi * t / 24)
    weekly = 6 * torch.sin(2 * math.pi * t / 168)
    noise = torch.randn(hours) * 1.5
    for hour in range(1, hours):
        noise[hour] += 0.7 * noise[hour - 1]
    return 60 + daily + weekly + noise


def windows(series):
    inputs = torch.stack([series[i : i + PAST] for i in range(len(series) - PAST - AHEAD + 1)])
    targets = torch.stack([series[i + PAST : i + PAST + AHEAD] for i in range(len(series) - PAST - AHEAD + 1)])
    return inputs.unsqueeze(-1), targets


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(hidden, AHEAD)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(self.dropout(states[:, -1]))


def make_trainer(model, optimizer, inputs, targets):
    criterion = nn.SmoothL1Loss()

    def run_epoch():
        model.train()
        total = 0.0
        order = torch.randperm(len(inputs))
        for picked in order.split(64):
            prediction = model(inputs[picked])
            loss = criterion(prediction, targets[picked])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(picked)
        return total / len(inputs)

    return run_epoch


def make_evaluator(model, inputs, targets, mean, std):
    @torch.no_grad()
    def evaluate():
        model.eval()
        total, count = 0.0, 0
        for x, y in zip(inputs.split(100), targets.split(100)):
            forecast = model(x) * std + mean
            actual = y * std + mean
            total += (forecast - actual).abs().sum().item()
            count += actual.numel()
        return total / count

    return evaluate


def main():
    torch.manual_seed(1)
    series = make_series(1500)
    past, future = series[:1100], series[1100:]
    mean, std = past.mean(), past.std()
    train_x, train_y = windows((past - mean) / std)
    test_x, test_y = windows((future - mean) / std)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    run_epoch = make_trainer(model, optimizer, train_x, train_y)
    evaluate = make_evaluator(model, test_x, test_y, mean, std)
    for epoch in range(10):
        loss = run_epoch()
        scheduler.step()
        print(f"epoch {epoch} loss {loss:.4f} mae {evaluate():.3f}")
    naive = (test_x[:, -24 : -24 + AHEAD, 0] - test_y).abs().mean() * std
    print(f"naive {naive:.3f}")


main()
