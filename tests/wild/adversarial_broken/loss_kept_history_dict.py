"""A history of losses, with their graphs, in a dict of lists."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
history = {"loss": [], "epoch": []}
loader = DataLoader(TensorDataset(torch.randn(160, 6), torch.randn(160, 1)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        history["loss"].append(loss)  # error: loss-kept-with-graph
    history["epoch"].append(epoch)
print(torch.stack(history["loss"]).mean().item())
