"""Parameters that get no gradient by nature: a layer for another setting, the last bias of an energy, a loaded head that waits."""
import torch
from torch import nn

torch.manual_seed(0)


class Energy(nn.Module):
    def __init__(self, centred=False):
        super().__init__()
        self.centred = centred
        self.inner, self.outer = nn.Linear(3, 24), nn.Linear(24, 1)
        self.centre = nn.Linear(3, 3)
        self.report = nn.Linear(24, 2)

    def forward(self, x):
        x = x - self.centre(x) if self.centred else x
        hidden = torch.tanh(self.inner(x))
        self.seen = self.report(hidden.detach()).softmax(1)
        return self.outer(hidden).sum()


pretrained = {"weight": torch.eye(2, 24), "bias": torch.zeros(2)}
energy = Energy()
energy.report.load_state_dict(pretrained)
optimizer = torch.optim.Adam(energy.parameters(), lr=5e-3)
for _ in range(80):
    x = torch.randn(64, 3, requires_grad=True)
    (force,) = torch.autograd.grad(energy(x), x, create_graph=True)
    loss = (force + x.detach()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
