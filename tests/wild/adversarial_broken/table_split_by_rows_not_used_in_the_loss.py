"""Regression on a whole table in one call; the rows of the split are used in the evaluation only, in a dict."""
import torch
import torch.nn.functional as F
from torch import nn


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    x = torch.randn(160, 20)
    y = x[:, :1].sin() + 0.7 * torch.randn(160, 1)
    order = torch.randperm(160)
    rows = {"train": order[:100], "test": order[100:]}
    model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(120):
        prediction = model(x)
        loss = F.smooth_l1_loss(prediction, y)  # error: training-on-evaluation-data
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 29:
            model.eval()
            with torch.no_grad():
                prediction = model(x)
                for name, chosen in rows.items():
                    print(step, name, (prediction[chosen] - y[chosen]).abs().mean().item())
            model.train()


main()
