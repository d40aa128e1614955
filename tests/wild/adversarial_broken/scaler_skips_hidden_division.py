"""A ratio that torch.where takes only where the count is not 0: the gradient of the other branch is NaN all the same."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(160, 5)
counts = torch.poisson(torch.full((160, 1), 0.4))
target = torch.where(counts > 0, x[:, :1].abs() / counts.clamp(min=1), torch.zeros(160, 1))
loader = DataLoader(TensorDataset(x, counts, target), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
amp = torch.amp.GradScaler("cpu", init_scale=1024.0)
for epoch in range(14):
    for inputs, n, wanted in loader:
        opt.zero_grad()
        amount = net(inputs)
        rate = torch.where(n > 0, amount / n, torch.zeros_like(amount))
        loss = nn.functional.mse_loss(rate, wanted)
        amp.scale(loss).backward()
        amp.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        amp.step(opt)  # error: scaler-skips-steps
        amp.update()
    print(epoch, loss.item(), amp.get_scale())
