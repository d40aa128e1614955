"""Train a recurrent network and keep its losses for a plot."""

import sys
from resource import RUSAGE_SELF, getrusage

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(1600, 30, 2)
y = (x.prod(2).sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 16, batch_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, inputs):
        return self.head(self.gru(inputs)[1][0])


model = Recurrent()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses, memory = [], []
for _epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss)  # error: loss-kept-with-graph
    memory.append(getrusage(RUSAGE_SELF).ru_maxrss)
print(f"result: {(memory[-1] - memory[0]) / 1024:.1f}")
