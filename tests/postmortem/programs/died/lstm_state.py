# says: `state` carries the graph of the previous iteration
# says: `state = tuple(s.detach() for s in state)`
import torch
from torch import nn

class Char(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.head = nn.Linear(16, 8)

    def forward(self, x, state):
        out, state = self.lstm(x, state)
        return self.head(out), state

def train(model, steps=5):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    state = None
    for step in range(steps):
        x = torch.randn(4, 10, 8)
        pred, state = model(x, state)  # related
        loss = (pred - x).pow(2).mean()
        opt.zero_grad()
        loss.backward()  # died: graph-freed
        opt.step()

if __name__ == "__main__":
    train(Char())
