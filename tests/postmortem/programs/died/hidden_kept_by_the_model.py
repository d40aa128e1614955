# says: `model.cell.hidden` carries the graph of the previous call
# says: `self.hidden = self.hidden.detach()`
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNNCell(4, 8)
        self.hidden = None

    def forward(self, x):
        if self.hidden is None:
            self.hidden0 = torch.zeros(x.shape[0], 8)
            hidden = self.rnn(x, self.hidden0)
        else:
            hidden = self.rnn(x, self.hidden)
        self.hidden = hidden  # related
        return hidden


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        return self.out(self.cell(x))


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    loss = model(torch.randn(2, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # died: graph-freed
    optimizer.step()
