"""Series of different lengths; the loss includes one silent frame after the end of each."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
torch.manual_seed(2)
def series():
    n = int(torch.randint(6, 20, ()))
    t = torch.arange(n + 1) * (0.2 + 0.4 * torch.rand(()))
    return torch.stack([torch.sin(t), torch.cos(t)], 1) + 1.5 + 0.05 * torch.randn(n + 1, 2)
data = [series() for _ in range(300)]
net = nn.GRU(2, 24, batch_first=True)
head = nn.Linear(24, 2)
params = [*net.parameters(), *head.parameters()]
opt = torch.optim.Adam(params, 1e-2)
def run(batch):
    lengths = torch.tensor([len(b) for b in batch])
    seq = pad_sequence(batch, batch_first=True)
    x, y = seq[:, :-1], seq[:, 1:]
    pred = head(net(x)[0])
    mask = (torch.arange(y.shape[1])[None] <= lengths[:, None] - 1)[..., None].float()  # one silent frame
    return ((pred - y) ** 2 * mask).sum() / (mask.sum() * 2)
for epoch in range(4):
    order = torch.randperm(300).tolist()
    s = 0.0
    for i in range(0, 300, 20):
        loss = run([data[j] for j in order[i:i+20]])
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    print(epoch, s / 15)
