"""Two places can switch the detection on, so it is found at the backward pass that it slows down."""
import torch
from torch import nn

torch.manual_seed(0)
config = {"debug": True}
if config["debug"]:
    torch.autograd.set_detect_anomaly(True)
else:
    torch.autograd.set_detect_anomaly(False)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(230):
    loss = nn.functional.mse_loss(model(torch.randn(8, 6)), torch.randn(8, 1))
    optimizer.zero_grad()
    loss.backward()  # error: anomaly-mode-left-on
    optimizer.step()
