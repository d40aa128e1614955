"""Healthy: CosineAnnealingWarmRestarts stepped every batch with the fractional epoch; lr rises at each restart by design."""
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
torch.set_num_threads(1)

x = torch.randn(640, 9)
y = (x[:, 0:1] + x[:, 1:2] * x[:, 2:3].sign()) + 0.1 * torch.randn(640, 1)
train_loader = DataLoader(TensorDataset(x[:512], y[:512]), batch_size=32, shuffle=True)
x_val, y_val = x[512:], y[512:]

net = nn.Sequential(nn.Linear(9, 48), nn.ELU(), nn.Linear(48, 48), nn.ELU(), nn.Linear(48, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2, eta_min=1e-4)

iters = len(train_loader)
snapshots = []
for epoch in range(6):  # cycles of 2 and 4 epochs
    net.train()
    for i, (inputs, targets) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
        scheduler.step(epoch + i / iters)
    net.eval()
    with torch.no_grad():
        val = criterion(net(x_val), y_val).item()
    print(f"epoch {epoch} lr {scheduler.get_last_lr()[0]:.5f} val {val:.4f}")
    if epoch in (1, 5):  # end of a cycle: snapshot ensemble
        snapshots.append({k: v.clone() for k, v in net.state_dict().items()})

preds = []
for state in snapshots:
    net.load_state_dict(state)
    net.eval()
    with torch.no_grad():
        preds.append(net(x_val))
print("snapshot ensemble val mse", round(criterion(torch.stack(preds).mean(0), y_val).item(), 4))
