"""A network with a mean and a variance for each input; the variance is read at the place of the mean."""

import torch
from torch import nn

torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, series):
        states, _ = self.memory(series)
        out = self.head(states[:, -1])
        mean, log_variance = out[..., 0], out[..., :1].squeeze(-1)
        return mean, log_variance


def train():
    time = torch.arange(40.0)
    phase = torch.rand(300, 1) * 6.28
    series = torch.sin(0.3 * time + phase) + 0.2 * torch.rand(300, 1) * torch.randn(300, 40)
    inputs, targets = series[:, :-1].unsqueeze(-1), series[:, -1]
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        total = 0.0
        for rows in torch.randperm(240).split(30):
            mean, log_variance = model(inputs[rows])
            loss = 0.5 * (log_variance + (targets[rows] - mean) ** 2 / log_variance.exp()).mean()
            optimizer.zero_grad()
            loss.backward()  # error: parameters-without-effect
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / 8:.3f}")
    model.eval()
    with torch.no_grad():
        mean, log_variance = model(inputs[240:])
    print(f"error {(mean - targets[240:]).abs().mean():.3f}, deviation {(0.5 * log_variance).exp().mean():.3f}")


train()
