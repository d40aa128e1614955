"""A batch is processed in parts for lack of memory; a stack gives the parts back with the last one first."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
torch.set_num_threads(1)
data = torch.randn(480, 6)
target = (data @ torch.randn(6, 5)).argmax(1)


def in_parts(network, batch, size):
    waiting, done = list(batch.split(size)), []
    while waiting:
        done.append(network(waiting.pop()))
    return torch.cat(done, dim=0)


def main():
    loader = DataLoader(TensorDataset(data, target), batch_size=48, shuffle=True, drop_last=True)
    network = nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 5))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(4):
        for inputs, classes in loader:
            scores = in_parts(network, inputs, 12)
            loss = nn.functional.nll_loss(scores.log_softmax(-1), classes)  # error: targets-of-other-samples
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


main()
