"""Levels of a river: a recurrent layer without packing, of which the head gets the state after one value."""

import torch
from torch import nn

torch.manual_seed(9)
level = torch.randn(900).cumsum(0) * 0.2 + torch.sin(torch.arange(900) / 9)
windows = level.unfold(0, 25, 1)
x, y = windows[:, :24].unsqueeze(2), windows[:, 24:]


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.lstm(x.transpose(0, 1))
        return self.head(states[0])  # error: input-without-influence


model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(3):
    for chosen in torch.randperm(len(x)).split(60):
        loss = nn.functional.l1_loss(model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
