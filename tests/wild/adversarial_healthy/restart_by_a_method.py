"""A fit of a law that falls back to the best state by the training loss after a spike, by a method; the validation is only printed."""

import copy, torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
W = torch.randn(8, 1)
X = torch.randn(128, 8)
Y = X @ W + 0.3 * torch.randn(128, 1)
XV = torch.randn(64, 8)
YV = XV @ W + 0.3 * torch.randn(64, 1)


class Run:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), 0.05, momentum=0.9)
        self.best = float("inf")
        self.safe = None

    def back(self):
        self.net.load_state_dict(self.safe)
        for g in self.opt.param_groups:
            g["lr"] *= 0.5

    def epoch(self):
        total = 0.0
        for i in range(0, 128, 32):
            loss = F.mse_loss(self.net(X[i : i + 32]), Y[i : i + 32])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() / 4
        train_loss = total
        with torch.no_grad():
            val_loss = F.mse_loss(self.net(XV), YV).item()
        if train_loss < self.best:
            self.best = train_loss
            self.safe = copy.deepcopy(self.net.state_dict())
        elif train_loss > 2 * self.best:
            self.back()
        return train_loss, val_loss


r = Run()
for e in range(25):
    t, v = r.epoch()
print(t, v)
