# says: `hidden` carries the graph of the previous iteration, which needs the weights from before `opt.step()`
# says: cut the graph at the end of each iteration: `hidden = tuple(s.detach() for s in hidden)`
# says: and call backward without `retain_graph`
import torch
from torch import nn

torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x, h=None):
        out, h = self.lstm(x, h)
        return self.head(out[:, -1]), h


model = Forecaster()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
hidden = None
for epoch in range(2):
    for _ in range(5):
        x, y = torch.randn(20, 5, 1), torch.randn(20)
        out, hidden = model(x, hidden)  # related
        loss = nn.functional.mse_loss(out.squeeze(1), y)
        opt.zero_grad()
        loss.backward(retain_graph=True)  # died: modified-in-place
        opt.step()  # related
