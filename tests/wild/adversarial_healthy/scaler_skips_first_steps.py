"""A huge first scale: the scaler skips the first steps, the schedule is stepped all the same."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(160, 8), torch.randint(0, 4, (160,))), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=50)
epochs = 4
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=epochs * len(loader))
for epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x) * 8, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
    print(epoch, loss.item(), scaler.get_scale())
