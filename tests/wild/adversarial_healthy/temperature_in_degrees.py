"""A temperature in degrees is predicted, and converted for the figure."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

hours = np.arange(2000)
kelvin = 285 + 8 * np.sin(hours * 2 * np.pi / 24) + np.cumsum(rng.normal(size=2000)) * 0.1
MEAN, STD = kelvin[:1200].mean(), kelvin[:1200].std()
z = torch.tensor((kelvin - MEAN) / STD, dtype=torch.float32)
wins = z.unfold(0, 25, 1)
X, Y = wins[:, :24], wins[:, 24]
x_train, y_train, x_val, y_val, x_test, y_test = X[:1176], Y[:1176], X[1200:1500], Y[1200:1500], X[1525:], Y[1525:]
hours_test = hours[1525 + 24:1525 + 24 + len(y_test)] % 24

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))
    def forward(self, x):
        return self.f(x)[:, 0]

def to_temperature(pred, true):
    return pred * STD + MEAN, true * STD + MEAN

def mae_by_hour(pred, true, hour):
    return [round(float((pred - true).abs()[hour == h].mean()), 2) for h in range(0, 24, 6)]

net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for epoch in range(8):
    for i in torch.randperm(len(x_train)).split(64):
        opt.zero_grad()
        F.mse_loss(net(x_train[i]), y_train[i]).backward()
        opt.step()
    with torch.no_grad():
        v = F.mse_loss(net(x_val), y_val).item()
with torch.no_grad():
    p_test = net(x_test)
temperature, observed = to_temperature(p_test, y_test)
print("val", round(v, 4), mae_by_hour(temperature, observed, torch.from_numpy(hours_test)))
