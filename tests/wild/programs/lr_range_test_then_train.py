"""Learning rate range test on a throwaway copy, steepest descent of the smoothed loss, then training with one cycle at that rate."""
import copy

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset


class RangeTest:
    def __init__(self, model, criterion, low=1e-5, high=1.0, steps=60, smoothing=0.9):
        self.model, self.criterion = copy.deepcopy(model), criterion
        self.low, self.high, self.steps, self.smoothing = low, high, steps, smoothing

    def run(self, loader):
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.low)
        factor = (self.high / self.low) ** (1 / (self.steps - 1))
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, factor)
        rates, losses, average, best = [], [], 0.0, float("inf")
        iterator = iter(loader)
        for step in range(self.steps):
            try:
                x, y = next(iterator)
            except StopIteration:
                iterator = iter(loader)
                x, y = next(iterator)
            optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            average = self.smoothing * average + (1 - self.smoothing) * loss.item()
            corrected = average / (1 - self.smoothing ** (step + 1))
            rates.append(optimizer.param_groups[0]["lr"])
            losses.append(corrected)
            best = min(best, corrected)
            if corrected > 4 * best:
                break
            optimizer.step()
            schedule.step()
        slopes = torch.tensor(losses).diff()
        return rates[int(slopes[5:].argmin()) + 5]


def main():
    torch.manual_seed(0)
    x, y = make_classification(900, 20, n_informative=8, n_classes=3, random_state=0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    loader = DataLoader(TensorDataset(x[:700], y[:700]), batch_size=50, shuffle=True)
    model, criterion = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 3)), nn.CrossEntropyLoss()
    rate = RangeTest(model, criterion).run(loader)
    print(f"suggested rate {rate:.2e}")
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=8 * len(loader))
    for _ in range(8):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        print(f"loss {loss.item():.3f} test accuracy {(model(x[700:]).argmax(1) == y[700:]).float().mean():.3f}")


main()
