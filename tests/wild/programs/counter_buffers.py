"""Healthy: buffers updated in forward, also during evaluation: a call counter and usage statistics that training never reads."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class CountedLinear(nn.Module):
    """Linear layer that remembers how often it was called and the largest activation it has produced."""

    def __init__(self, i, o):
        super().__init__()
        self.linear = nn.Linear(i, o)
        self.register_buffer("num_calls", torch.tensor(0, dtype=torch.long))
        self.register_buffer("num_samples", torch.tensor(0, dtype=torch.long))
        self.register_buffer("max_abs", torch.tensor(0.0))

    def forward(self, x):
        out = self.linear(x)
        self.num_calls += 1
        self.num_samples += x.size(0)
        with torch.no_grad():
            self.max_abs.copy_(torch.maximum(self.max_abs, out.abs().max()))
        return out


model = nn.Sequential(CountedLinear(7, 32), nn.Tanh(), CountedLinear(32, 1))
x = torch.randn(480, 7)
y = (x[:, 0:1] - x[:, 1:2] * x[:, 2:3] > 0).float()
train_dl = DataLoader(TensorDataset(x[:384], y[:384]), batch_size=32, shuffle=True)
valid_dl = DataLoader(TensorDataset(x[384:], y[384:]), batch_size=48)
loss_func = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(8):
    model.train()
    for xb, yb in train_dl:
        loss = loss_func(model(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()
    model.eval()
    with torch.no_grad():
        valid_loss = sum(loss_func(model(xb), yb).item() * len(xb) for xb, yb in valid_dl) / 96
    print(epoch, f"{valid_loss:.4f}")

print("calls", model[0].num_calls.item(), "samples", model[0].num_samples.item(), "max", round(model[2].max_abs.item(), 4))
