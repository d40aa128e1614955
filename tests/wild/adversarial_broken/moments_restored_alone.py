"""A run goes on from a file: the moments and the step are restored, the weights are new."""
import io

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(160, 6)
y = x.sum(1, keepdim=True)


def build():
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    return net, torch.optim.AdamW(net.parameters(), lr=5e-3)


def run(net, opt, start, stop):
    for step in range(start, stop):
        rows = torch.randint(0, 160, (16,))
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(stop, loss.item())


net, opt = build()
run(net, opt, 0, 60)
file = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "step": 60}, file)
file.seek(0)
kept = torch.load(file)
net, opt = build()
opt.load_state_dict(kept["opt"])  # error: state-not-loaded
run(net, opt, kept["step"], 90)
