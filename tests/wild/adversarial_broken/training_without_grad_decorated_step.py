"""The decorator that belongs to predict() also stands on training_step()."""
import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 12, batch_first=True)
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1])


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
t = torch.arange(0, 40, 0.1)
series = torch.sin(t).unfold(0, 16, 4).unsqueeze(-1)


@torch.no_grad()
def training_step(batch):
    prediction = model(batch[:, :-1])  # error: training-without-grad
    return nn.functional.mse_loss(prediction, batch[:, -1])


for epoch in range(5):
    for batch in series.split(16):
        optimizer.zero_grad()
        loss = training_step(batch).requires_grad_(True)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
