"""Healthy: gradient clipping by value, and loss lists that hold floats or detached tensors, averaged at the end of the epoch."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)
torch.set_num_threads(1)


class ForecastLSTM(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(input_size=1, hidden_size=hidden, batch_first=True)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.linear(out[:, -1])


def windows(n, lookback=20):
    phase, freq = 6.28 * torch.rand(n, 1), 0.2 + 0.3 * torch.rand(n, 1)
    series = torch.sin(freq * torch.arange(lookback + 1) + phase) + 0.05 * torch.randn(n, lookback + 1)
    return TensorDataset(series[:, :-1].unsqueeze(-1), series[:, -1:])


train_loader = DataLoader(windows(480), batch_size=32, shuffle=True)
val_loader = DataLoader(windows(160), batch_size=32)
model = ForecastLSTM()
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

history = {"train_loss": [], "val_loss": []}
for epoch in range(6):
    model.train()
    batch_losses = []
    for X, y in train_loader:
        y_pred = model(X)
        loss = loss_fn(y_pred, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), clip_value=0.1)
        optimizer.step()
        batch_losses.append(loss.item())
    history["train_loss"].append(sum(batch_losses) / len(batch_losses))

    model.eval()
    outputs = []
    with torch.no_grad():
        for X, y in val_loader:
            outputs.append({"val_loss": loss_fn(model(X), y).detach()})
    history["val_loss"].append(torch.stack([o["val_loss"] for o in outputs]).mean().item())
    print("Epoch [{}], train_loss: {:.4f}, val_loss: {:.4f}".format(epoch, history["train_loss"][-1], history["val_loss"][-1]))
