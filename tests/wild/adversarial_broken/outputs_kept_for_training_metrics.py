"""Outputs of all training batches are kept, with their graphs, to compute a metric at the end of the epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(400, 6), torch.randn(400, 1)), batch_size=5, shuffle=True)
predictions, targets = [], []
for epoch in range(2):
    for x, y in loader:
        prediction = model(x)
        loss = nn.functional.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        predictions.append(prediction)  # error: loss-kept-with-graph
        targets.append(y)
print(torch.corrcoef(torch.cat([torch.cat(predictions), torch.cat(targets)], 1).T.detach()))
