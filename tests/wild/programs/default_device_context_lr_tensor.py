"""set_default_device and a tensor learning rate; capturable-style state, a compiled-looking step, lists of optimizers."""
import torch
from torch import nn

torch.set_default_device("cpu")
torch.manual_seed(3)


class Blend(nn.Module):
    def __init__(self):
        super().__init__()
        self.paths = nn.ModuleDict({"wide": nn.Linear(10, 1), "deep": nn.Sequential(nn.Linear(10, 32), nn.Hardswish(), nn.Linear(32, 1))})

    def forward(self, x):
        return sum(path(x) for path in self.paths.values()).squeeze(-1)


model = Blend()
optims = [
    torch.optim.Adam(model.paths["deep"].parameters(), lr=torch.tensor(0.01), foreach=False),
    torch.optim.SGD(model.paths["wide"].parameters(), lr=torch.tensor(0.05)),
]
scheds = [torch.optim.lr_scheduler.ExponentialLR(o, 0.98) for o in optims]
target = lambda x: x[:, 0] * 2 + (x[:, 1] * x[:, 2]).tanh()
for epoch in range(8):
    total = torch.zeros(())
    for _ in range(15):
        x = torch.randn(64, 10)
        loss = nn.functional.l1_loss(model(x), target(x))
        for o in optims:
            o.zero_grad()
        loss.backward()
        for o in optims:
            o.step()
        total += loss.detach()
    for s in scheds:
        s.step()
    print(epoch, f"{total.item() / 15:.4f}", [f"{float(o.param_groups[0]['lr']):.5f}" for o in optims])
