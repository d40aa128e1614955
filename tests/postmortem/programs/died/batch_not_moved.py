# says: `x` is on cpu, the weights of `model.fc` are on meta
# says: `model.to()` leaves the weights on meta
# says: `x = x.to('meta')` before this line
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)  # died: different-devices


device = torch.device("meta")
model = Net()
model.to(device)  # related
for step in range(2):
    batch = torch.randn(8, 4)  # related
    loss = model(batch).sum()
    loss.backward()
