"""Linear forecast of the oil temperature: 48 hours in, 12 out; chronological split with borders."""
import csv
import os
import torch

torch.manual_seed(0)
with open(os.path.join(os.environ['TRUESTEP_DATA'], 'etth1', 'ETTh1.csv')) as f:
    rows = [[float(v) for v in r[1:]] for i, r in enumerate(csv.reader(f)) if i]
data = torch.tensor(rows)[:8000]
SEQ, PRED = 48, 12
n_train, n_val = 5600, 1200
mean, std = data[:n_train].mean(0), data[:n_train].std(0)
data = (data - mean) / std


def section(start, stop):
    """Starts of the windows with targets in [start, stop)."""
    return torch.arange(max(start - SEQ, 0), stop - SEQ - PRED + 1)


train_s, val_s, test_s = section(0, n_train), section(n_train, n_train + n_val), section(n_train + n_val, len(data))
hours_in, hours_out = torch.arange(SEQ), torch.arange(SEQ, SEQ + PRED)


def batch(starts):
    return data[starts[:, None] + hours_in], data[starts[:, None] + hours_out, -1]


W = torch.zeros(SEQ * 7, PRED, requires_grad=True)
b = torch.zeros(PRED, requires_grad=True)


def forecast(x):
    last = x[:, -1:, :]
    return (x - last).flatten(1) @ W + b + last[:, :, -1]


@torch.no_grad()
def mse(starts):
    x, y = batch(starts)
    return (forecast(x) - y).pow(2).mean().item()


opt = torch.optim.AdamW([W, b], lr=1e-4, weight_decay=1e-2)
print(f'persistence: val {mse(val_s):.4f} test {mse(test_s):.4f}')
best, keep = float('inf'), None
for epoch in range(8):
    total = 0.0
    for starts in train_s[torch.randperm(len(train_s))].split(64):
        x, y = batch(starts)
        loss = (forecast(x) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(starts)
    val = mse(val_s)
    if val < best:
        best, keep = val, (W.detach().clone(), b.detach().clone())
    print(f'epoch {epoch} train {total / len(train_s):.4f} val {val:.4f}')
with torch.no_grad():
    W.copy_(keep[0])
    b.copy_(keep[1])
print(f'test {mse(test_s):.4f}')
