"""clip_grad_value_ one line too late."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
dl = DataLoader(TensorDataset(torch.randn(96, 4), torch.randn(96, 1)), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for epoch in range(4):
    for xb, yb in dl:
        loss = nn.functional.mse_loss(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        torch.nn.utils.clip_grad_value_(net.parameters(), clip_value=0.5)  # error: clip-after-step
    print(epoch, loss.item())
