"""A dict of sums is begun again with each short epoch; its loss is a tensor with the graphs of all batches."""
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(120, 4), torch.randn(120, 1)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)


def epoch():
    totals = {"loss": 0.0, "seen": 0}
    for rows in torch.randperm(120).split(15):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        loss.backward()
        opt.step()
        totals["loss"] += loss * len(rows)  # error: loss-kept-with-graph
        totals["seen"] += len(rows)
    return totals


for number in range(5):
    totals = epoch()
    print(number, float(totals["loss"]) / totals["seen"])
