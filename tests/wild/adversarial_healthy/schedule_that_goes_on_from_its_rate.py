"""Resume with ExponentialLR / StepLR(1) / MultiplicativeLR: the rate in the optimizer's groups is all that they need."""

import os, tempfile, torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
path = os.path.join(tempfile.mkdtemp(), "ck.pt")
W = torch.randn(8, 1)


def train(epochs, resume, make):
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), 2e-2)
    sched = make(opt)
    first = 0
    if resume:
        ck = torch.load(path)
        net.load_state_dict(ck["net"])
        opt.load_state_dict(ck["opt"])
        first = ck["epoch"]
    for epoch in range(first, epochs):
        for _ in range(20):
            x = torch.randn(64, 8)
            loss = F.mse_loss(net(x), x @ W)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        print(epoch, opt.param_groups[0]["lr"], loss.item())
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch + 1}, path)


exp = lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.6)
train(3, False, exp)
train(6, True, exp)
