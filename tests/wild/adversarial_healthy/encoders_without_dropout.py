"""Masked patches are completed by encoders with a dropout of 0: the mode of the model makes no difference."""

import torch
from torch import nn

torch.manual_seed(4)
place = torch.linspace(0, 6.28, 12)
phase, speed = 6.28 * torch.rand(700, 1), torch.randint(1, 4, (700, 1))
series = torch.sin(speed * place + phase)[..., None]
position = torch.eye(12).expand(len(series), -1, -1)
net = nn.Sequential(
    nn.Linear(14, 32),
    nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), 1),
    nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True),
    nn.Linear(32, 1),
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)


def hidden(values):
    mask = (torch.rand(values.shape[:2]) < 0.3)[..., None]
    return torch.cat([values.masked_fill(mask, 0.0), mask.float(), position[: len(values)]], 2), mask


for _epoch in range(6):
    for rows in torch.randperm(500).split(50):
        given, mask = hidden(series[rows])
        loss = (net(given) - series[rows])[mask].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    given, mask = hidden(series[500:])
    print(f"error {(net(given) - series[500:])[mask].square().mean().item():.3f}")
