"""Healthy: optimizer re-created for each training phase: Adam first, then SGD with a new head on the same body."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU())
        self.head = nn.Linear(40, 10)

    def forward(self, x):
        return self.head(self.body(x))


def pretrain_batch(n=64):
    """Predict the sorted vector."""
    x = torch.randn(n, 10)
    return x, x.sort(dim=1).values


def finetune_batch(n=64):
    """Is the range of the values large?"""
    x = torch.randn(n, 10)
    return x, (x.amax(1) - x.amin(1) > 3.08).long()


net = Net()

# Phase 1
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(100):
    x, y = pretrain_batch()
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
print("phase 1 mse", round(loss.item(), 4))

# Phase 2: new head, new optimizer over everything that is in the model now
net.head = nn.Linear(40, 2)
optimizer = torch.optim.SGD(
    [{"params": net.body.parameters(), "lr": 0.02}, {"params": net.head.parameters()}], lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=120, power=1.0)
for step in range(120):
    x, y = finetune_batch()
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()

net.eval()
with torch.no_grad():
    x, y = finetune_batch(2000)
    print("phase 2 loss", round(loss.item(), 4), "accuracy", round((net(x).argmax(1) == y).float().mean().item(), 4))
