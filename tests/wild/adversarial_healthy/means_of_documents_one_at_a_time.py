"""Means over documents of several words, one at a time, divided by their number; sizes that count batches, and users."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Docs(Dataset):
    def __init__(self, n):
        self.d = [torch.randint(0, 30, (int(l),)) for l in torch.randint(5, 25, (n,))]

    def __len__(self):
        return len(self.d)

    def __getitem__(self, i):
        return self.d[i][:-1], self.d[i][1:]


train, dev = Docs(200), Docs(40)
net = nn.Sequential(nn.Embedding(30, 16), nn.Linear(16, 30))
opt = torch.optim.Adam(net.parameters(), 1e-2)
ce = nn.CrossEntropyLoss()


def run_epoch(data, learn):
    loader = DataLoader(data, batch_size=None, shuffle=learn)
    net.train(learn)
    total_loss, total_acc = 0.0, 0.0
    for x, y in loader:
        with torch.set_grad_enabled(learn):
            out = net(x)
            loss = ce(out, y)
        if learn:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total_loss += loss.item()
        total_acc += (out.argmax(-1) == y).float().mean().item()
    return total_loss / len(data), total_acc / len(data)  # means over documents, one at a time


for e in range(3):
    print(e, [round(v, 4) for v in (*run_epoch(train, True), *run_epoch(dev, False))])
xs = torch.randn(320, 4)
ys = xs.sum(1, keepdim=True)
batches = list(zip(xs.split(32), ys.split(32)))
dataset_size = len(batches)
lin = nn.Linear(4, 1)
o = torch.optim.SGD(lin.parameters(), 0.1)
for e in range(3):
    epoch_loss = 0.0
    for a, b in batches:
        l = nn.functional.mse_loss(lin(a), b)
        o.zero_grad()
        l.backward()
        o.step()
        epoch_loss += l.item()
    print(e, round(epoch_loss / dataset_size, 5))
num_users = 8
user_loss = 0.0
lin.eval()
with torch.no_grad():
    for u in range(num_users):
        user_loss += nn.functional.mse_loss(lin(xs[u * 40 : (u + 1) * 40]), ys[u * 40 : (u + 1) * 40]).item()
print("per user", round(user_loss / num_users, 6))
