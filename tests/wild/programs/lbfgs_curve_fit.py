"""Healthy: LBFGS with a closure that clears and recomputes, strong Wolfe line search, full batch."""
import torch
import torch.nn as nn
from torch.optim import LBFGS

torch.manual_seed(5)
torch.set_num_threads(1)

x = torch.linspace(-2, 2, 200).unsqueeze(1)
y = torch.exp(-x ** 2) * torch.sin(4 * x) + 0.02 * torch.randn_like(x)

model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
criterion = nn.MSELoss()
optimizer = LBFGS(model.parameters(), lr=1.0, max_iter=15, history_size=10, line_search_fn="strong_wolfe")

for i in range(8):

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if loss.requires_grad:
            loss.backward()
        return loss

    loss = optimizer.step(closure)
    print("STEP", i, "loss", round(loss.item(), 6))

with torch.no_grad():
    print("max abs error", round((model(x) - y).abs().max().item(), 4))
