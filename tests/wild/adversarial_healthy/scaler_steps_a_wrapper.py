"""The scaler is given a wrapper that is not an optimizer of torch: it steps the optimizer inside, and keeps slow weights."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Lookahead:
    def __init__(self, inner, every=5, part=0.5):
        self.inner, self.every, self.part, self.calls = inner, every, part, 0
        self.slow = [p.detach().clone() for group in inner.param_groups for p in group["params"]]

    @property
    def param_groups(self):
        return self.inner.param_groups

    def zero_grad(self):
        self.inner.zero_grad()

    def step(self):
        self.inner.step()
        self.calls += 1
        if self.calls % self.every == 0:
            fast = [p for group in self.param_groups for p in group["params"]]
            with torch.no_grad():
                for slow, p in zip(self.slow, fast):
                    slow += self.part * (p - slow)
                    p.copy_(slow)


x = torch.randn(200, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = Lookahead(torch.optim.Adam(model.parameters(), lr=0.01))
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for step in range(160):
    rows = torch.randint(0, 200, (20,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(loss.item())
