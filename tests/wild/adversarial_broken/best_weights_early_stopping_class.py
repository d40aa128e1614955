"""An early stopping helper keeps the state dict of the best epoch without a copy, and restores it at the end."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.bad, self.best, self.state = patience, 0, float("inf"), None

    def step(self, loss, model):
        if loss < self.best:
            self.best, self.bad = loss, 0
            self.state = {"epoch_loss": loss, "weights": dict(model.state_dict())}  # error: best-weights-aliased
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(160, 10)
    y = (x[:, 0] + 1.5 * torch.randn(160) > 0).long()
    loader = DataLoader(TensorDataset(x[:100], y[:100]), batch_size=20, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    stopper = EarlyStopping()
    for epoch in range(30):
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            loss = nn.functional.cross_entropy(model(x[100:]), y[100:]).item()
        if stopper.step(loss, model):
            break
    model.load_state_dict(stopper.state["weights"])
    print("best", stopper.best, "after", epoch + 1)


main()
