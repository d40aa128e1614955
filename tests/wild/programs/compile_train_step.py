"""Healthy: a compiled function that holds forward and loss; backward and the step stay outside."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)

net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


@torch.compile(backend="aot_eager", fullgraph=True)
def loss_fn(x, y):
    return F.mse_loss(net(x), y)


def train_step(x, y):
    opt.zero_grad()
    loss = loss_fn(x, y)
    loss.backward()
    opt.step()
    return loss.detach()


history = []
for it in range(80):
    x = torch.rand(32, 4) * 2 - 1
    y = (x[:, :2].prod(1, keepdim=True) + x[:, 2:3]).tanh()
    history.append(train_step(x, y).item())
print("first ten %.4f last ten %.4f" % (sum(history[:10]) / 10, sum(history[-10:]) / 10))
