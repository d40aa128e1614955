"""Broken: the gradients are unscaled and clipped after the first of two micro-batches, and the second is added scaled."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(256, 8), torch.randint(0, 3, (256,))
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)


def loss_of(pick):
    with torch.autocast("cpu", dtype=torch.float16):
        return scaler.scale(F.cross_entropy(net(x[pick]), y[pick]) / 2)


for step in range(30):
    opt.zero_grad()
    loss_of(torch.randint(0, 256, (32,))).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    loss_of(torch.randint(0, 256, (32,))).backward()  # error: scaler-misused
    scaler.step(opt)
    scaler.update()
