"""forward() is called by name; a forward hook that collects activations never runs."""
import torch
from torch import nn

torch.manual_seed(0)
activations = {}
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
model.register_forward_hook(lambda m, i, o: activations.__setitem__("out", o.detach()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(30):
    x = torch.randn(16, 4)
    prediction = model.forward(x)  # error: forward-called-directly
    loss = nn.functional.mse_loss(prediction, x.mean(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(len(activations), loss.item())
