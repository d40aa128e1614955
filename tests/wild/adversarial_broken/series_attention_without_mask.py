"""Series of measurements, padded with zeros; attention reads the padding, and the mean over time too."""
import torch
from torch import nn

torch.manual_seed(0)
series = [torch.randn(int(n), 3) + 1 for n in torch.randint(6, 30, (200,))]
targets = torch.stack([one[:, 0].mean() for one in series])
encoder = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.encoder, self.out = nn.Linear(3, 16), encoder, nn.Linear(16, 1)

    def forward(self, batch):
        return self.out(self.encoder(torch.relu(self.lift(batch))).mean(dim=1)).squeeze(-1)


model = Regressor()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(30):
    rows = torch.randint(0, 200, (16,)).tolist()
    batch = torch.zeros(16, max(len(series[row]) for row in rows), 3)
    for place, row in enumerate(rows):
        batch[place, : len(series[row])] = series[row]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(batch), targets[rows])  # error: padding-changes-output
    loss.backward()
    optimizer.step()
print(loss.item())
