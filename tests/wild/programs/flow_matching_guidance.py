"""Healthy: conditional flow matching, labels dropped for classifier-free guidance, AveragedModel as EMA, Euler sampling with the EMA."""
import torch
from sklearn.datasets import make_moons
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Flow(nn.Module):
    def __init__(self, dim: int = 2, h: int = 64, classes: int = 2):
        super().__init__()
        self.label = nn.Embedding(classes + 1, 8)  # the last row is "no label"
        self.net = nn.Sequential(nn.Linear(dim + 1 + 8, h), nn.ELU(), nn.Linear(h, h), nn.ELU(), nn.Linear(h, dim))

    def forward(self, t: Tensor, x_t: Tensor, label: Tensor) -> Tensor:
        return self.net(torch.cat((t, x_t, self.label(label)), -1))

    def step(self, x_t: Tensor, t_start: float, t_end: float, label: Tensor, scale: float) -> Tensor:
        t = torch.full((len(x_t), 1), t_start)
        conditional, free = self(t, x_t, label), self(t, x_t, torch.full_like(label, 2))
        return x_t + (free + scale * (conditional - free)) * (t_end - t_start)


torch.manual_seed(0)
torch.set_num_threads(1)
flow = Flow()
ema = AveragedModel(flow, multi_avg_fn=get_ema_multi_avg_fn(0.97))
optimizer = torch.optim.AdamW(flow.parameters(), 5e-3)
loss_fn = nn.MSELoss()

for i in range(400):
    points, labels = make_moons(128, noise=0.05, random_state=i)
    x_1, label = torch.tensor(points, dtype=torch.float32), torch.tensor(labels)
    label = torch.where(torch.rand(len(label)) < 0.15, 2, label)
    x_0 = torch.randn_like(x_1)
    t = torch.rand(len(x_1), 1)
    x_t = (1 - t) * x_0 + t * x_1
    dx_t = x_1 - x_0
    optimizer.zero_grad()
    loss = loss_fn(flow(t, x_t, label), dx_t)
    loss.backward()
    optimizer.step()
    ema.update_parameters(flow)

sampler = ema.module.eval()
with torch.no_grad():
    x, wanted = torch.randn(256, 2), torch.arange(256) % 2
    steps = torch.linspace(0, 1, 11).tolist()
    for a, b in zip(steps, steps[1:]):
        x = sampler.step(x, a, b, wanted, scale=1.5)
upper, lower = x[wanted == 0], x[wanted == 1]
print(f"loss {loss.item():.3f}, mean height of the two moons {upper[:, 1].mean():.2f} {lower[:, 1].mean():.2f}")
