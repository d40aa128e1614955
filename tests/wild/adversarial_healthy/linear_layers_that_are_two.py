"""Linear layers after one another that are no mistake: low rank, residuals, gates, a projector and a predictor."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class LowRank(nn.Module):
    def __init__(self, inputs, rank, outputs):
        super().__init__()
        self.down, self.up = nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs)

    def forward(self, x):
        return self.up(self.down(x))


class Mixed(nn.Module):
    """Attention on projected inputs, a residual connection, a gate by hand, and a recurrent layer."""

    def __init__(self, width=16):
        super().__init__()
        self.project = nn.Linear(6, width)
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, width)
        self.packed = nn.Linear(width, 2 * width)
        self.rectified, self.after = nn.Linear(width, width), nn.Linear(width, width)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.projector = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width))
        self.predictor = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.head = LowRank(width, 3, 6)

    def forward(self, x):
        x = self.project(x)
        mixed = (self.queries(x) @ self.keys(x).transpose(1, 2)).softmax(-1) @ x
        value, gate = self.packed(x + mixed).chunk(2, -1)
        hidden = self.rectified(value * gate.sigmoid())
        hidden = self.after(hidden * (hidden > 0))
        states, _ = self.recurrent(self.project_again(hidden))
        z = self.projector(states[:, -1])
        return self.head(torch.tanh(states)), z, self.predictor(z)

    def project_again(self, hidden):
        return hidden + self.after(hidden)


net = Mixed()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
series = torch.randn(200, 9, 6).cumsum(1)
for step in range(45):
    rows = torch.randint(0, 200, (32,))
    batch = series[rows]
    forecast, z, predicted = net(batch[:, :-1])
    _, other, other_predicted = net(batch[:, :-1] + 0.01 * torch.randn_like(batch[:, :-1]))
    agreement = F.cosine_similarity(predicted, other.detach()).mean() + F.cosine_similarity(other_predicted, z.detach()).mean()
    loss = F.mse_loss(forecast, batch[:, 1:]) - 0.1 * agreement
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
