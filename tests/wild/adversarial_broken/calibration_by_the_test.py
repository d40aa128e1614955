"""Calibrate logits on the test, and print its calibrated loss."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(900, 8)
y = (x[:, 0] + 0.7 * torch.randn(900) > 0.8).float()
parts = {"train": (x[:500], y[:500]), "val": (x[500:700], y[500:700]), "test": (x[700:], y[700:])}
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


@torch.no_grad()
def logits_of(part: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    model.eval()
    return model(part[0])


def fit_temperature(logits: torch.Tensor, labels: torch.Tensor) -> float:
    candidates = torch.linspace(0.5, 3, 26)
    losses = [F.binary_cross_entropy_with_logits(logits / one, labels) for one in candidates]
    return float(candidates[torch.stack(losses).argmin()])


def main() -> None:
    train, val, test = parts["train"], parts["val"], parts["test"]
    for epoch in range(4):
        model.train()
        for rows in torch.randperm(500).split(50):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(train[0][rows]), train[1][rows]).backward()
            optimizer.step()
        print(epoch, F.binary_cross_entropy_with_logits(logits_of(val), val[1]).item())
    temperature = fit_temperature(logits_of(test), test[1])  # error: chosen-without-validation
    print("calibrated", F.binary_cross_entropy_with_logits(logits_of(test) / temperature, test[1]).item())


main()
