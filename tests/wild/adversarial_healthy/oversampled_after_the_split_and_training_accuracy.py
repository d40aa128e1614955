# oversampling after the split; evaluated on the test set, and on a part of the training set for the learning curve
import torch
from torch import nn
torch.manual_seed(0)
def load():
    x = torch.randn(1200, 6); y = (x[:, 0] + .3 * x[:, 1] > 1.2).long(); 
    xt, yt, xv, yv = x[:900], y[:900], x[900:], y[900:]
    pos = torch.nonzero(yt == 1)[:, 0]
    more = pos[torch.randint(0, len(pos), (600,))]
    return torch.cat([xt, xt[more]]), torch.cat([yt, yt[more]]), xv, yv
x_train, y_train, x_test, y_test = load()
probe = torch.randperm(len(x_train))[:200]
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 2)); opt = torch.optim.Adam(net.parameters(), 3e-3)
def accuracy(x, y):
    net.eval()
    with torch.no_grad(): return (net(x).argmax(1) == y).float().mean().item()
for ep in range(12):
    net.train()
    for i in torch.randperm(len(x_train)).split(64):
        loss = nn.functional.cross_entropy(net(x_train[i]), y_train[i])
        opt.zero_grad(); loss.backward(); opt.step()
    print(ep, "train", accuracy(x_train[probe], y_train[probe]), "test", accuracy(x_test, y_test))
