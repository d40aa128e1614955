"""Models that read the first position: of an initial state, of a token that sums up, of the state that is acted on."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(6)


class Flow(nn.Module):
    """A path from the initial state of each curve."""

    def __init__(self):
        super().__init__()
        self.field = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3))

    def forward(self, curves):
        state, path = curves[:, 0], []
        for _ in range(curves.shape[1]):
            path.append(state)
            state = state + 0.1 * self.field(state)
        return torch.stack(path, 1)


class Policy(nn.Module):
    """Scores for the first of the states; each is encoded alone."""

    def __init__(self):
        super().__init__()
        self.encode, self.head = nn.Sequential(nn.Linear(3, 32), nn.ReLU()), nn.Linear(32, 3)

    def forward(self, states):
        return self.head(self.encode(states)[:, 0])


class Summary(nn.Module):
    """The first token reads all others."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(24, 2, 32, dropout=0.0, batch_first=True)
        self.into, self.mix, self.head = nn.Linear(3, 24), nn.TransformerEncoder(layer, 1), nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.mix(self.into(x))[:, 0])


class Backwards(nn.Module):
    """A recurrent layer that starts at the end."""

    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 24, batch_first=True), nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.rnn(x.flip(1))[0].flip(1)[:, 0])


inputs = torch.randn(96, 10, 3).cumsum(1)
for kind in (Flow, Policy, Summary, Backwards):
    model = kind()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(4):
        for chosen in torch.randperm(96).split(24):
            result = model(inputs[chosen])
            target = inputs[chosen] if result.dim() == 3 else inputs[chosen][:, 0].roll(1, 1)
            optimizer.zero_grad()
            F.smooth_l1_loss(result, target).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        errors = [(model(part) - (part if kind is Flow else part[:, 0])).abs().mean() for part in inputs.split(32)]
    print(kind.__name__, float(torch.stack(errors).mean()))
