# says: `model.hidden` carries the graph of the previous iteration
# says: `self.hidden = self.hidden.detach()`
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.head = nn.Linear(8, 2)
        self.hidden = torch.zeros(3, 8)

    def forward(self, x):
        self.hidden = self.cell(x, self.hidden)  # related
        return self.head(self.hidden)


def main():
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(3, 4)).square().mean()
        loss.backward(retain_graph=True)  # died: modified-in-place
        optimizer.step()  # related


main()
