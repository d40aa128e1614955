"""An isotonic fit on the test decomposes its Brier score."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

n, d = 1500, 12
x = torch.randn(n, d)
w = torch.randn(d)
y = ((x @ w + 1.5 * torch.randn(n)) > 0.8).float()
order = torch.randperm(n)
tr, va, te = order[:900], order[900:1200], order[1200:]
x_train, y_train = x[tr], y[tr]
x_val, y_val = x[va], y[va]
x_test, y_test = x[te], y[te]
net = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), 3e-3)
loader = DataLoader(TensorDataset(x_train, y_train), 64, shuffle=True)
best, state = 1e9, None
for epoch in range(6):
    net.train()
    for xb, yb in loader:
        opt.zero_grad()
        F.binary_cross_entropy_with_logits(net(xb).squeeze(1), yb).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        val_loss = F.binary_cross_entropy_with_logits(net(x_val).squeeze(1), y_val).item()
    if val_loss < best:
        best, state = val_loss, {k: v.clone() for k, v in net.state_dict().items()}
net.load_state_dict(state)
net.eval()
with torch.no_grad():
    s_val = net(x_val).squeeze(1).sigmoid().numpy()
    s_test = net(x_test).squeeze(1).sigmoid().numpy()
y_val, y_test = y_val.numpy(), y_test.numpy()

# CORP decomposition of the Brier score (Dimitriadis et al., 2021): miscalibration, discrimination, uncertainty
from sklearn.isotonic import IsotonicRegression
def brier(labels, scores):
    return float(((scores - labels) ** 2).mean())
corp = IsotonicRegression(out_of_bounds="clip").fit(s_test, y_test)
recalibrated = corp.predict(s_test)
whole = brier(y_test, s_test)
mcb = whole - brier(y_test, recalibrated)
unc = brier(y_test, np.full(len(y_test), y_test.mean()))
print("Brier", round(whole, 4), "MCB", round(mcb, 4), "DSC", round(unc - brier(y_test, recalibrated), 4))
