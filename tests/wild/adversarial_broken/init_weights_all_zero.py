"""An init_weights function given to model.apply that fills every Linear with zeros, as one would do for biases."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def init_weights(module):
    if isinstance(module, nn.Linear):
        module.weight.data.zero_()
        module.bias.data.zero_()


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


x = torch.randn(320, 7)
y = torch.sin(x[:, 0]) + x[:, 1]
model = Regressor()
model.apply(init_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    for rows in torch.randperm(320).split(32):
        prediction = model(x[rows])  # error: symmetric-initialisation
        loss = nn.functional.mse_loss(prediction, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
