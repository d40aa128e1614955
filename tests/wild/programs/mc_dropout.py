"""Healthy: Monte Carlo dropout: at test time only the dropout modules are switched back to train mode, on purpose."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Regressor(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(p),
            nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p),
        )
        self.mu = nn.Linear(64, 1)
        self.log_var = nn.Linear(64, 1)

    def forward(self, x):
        h = self.net(x)
        return self.mu(h), self.log_var(h)


def enable_dropout(model):
    """Function to enable the dropout layers during test-time."""
    for m in model.modules():
        if m.__class__.__name__.startswith("Dropout"):
            m.train()


def predict_mc(model, x, samples=20):
    model.eval()
    enable_dropout(model)
    with torch.no_grad():
        mus = torch.stack([model(x)[0] for _ in range(samples)])
    return mus.mean(0), mus.std(0)


torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.rand(512, 1) * 4 - 2
y = torch.sin(2 * x) + (0.05 + 0.15 * (x > 0)) * torch.randn_like(x)

model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(12):
    model.train()
    for idx in torch.randperm(512).chunk(8):
        mu, log_var = model(x[idx])
        loss = F.gaussian_nll_loss(mu, y[idx], log_var.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

grid = torch.linspace(-2, 2, 41).unsqueeze(1)
mean, std = predict_mc(model, grid)
model.eval()
with torch.no_grad():
    point, _ = model(grid)
print(f"rmse mc {(mean - torch.sin(2 * grid)).pow(2).mean().sqrt():.4f}, "
      f"rmse point {(point - torch.sin(2 * grid)).pow(2).mean().sqrt():.4f}, mean spread {std.mean():.4f}")
