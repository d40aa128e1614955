"""One batch of the validation loader is looked at every twenty steps, in train mode."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
train_loader = DataLoader(TensorDataset(torch.randn(320, 8), torch.randint(0, 4, (320,))), batch_size=8, shuffle=True)
val_loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), batch_size=32)
step = 0
for epoch in range(2):
    for x, y in train_loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        step += 1
        if step % 20 == 0:
            vx, vy = next(iter(val_loader))
            with torch.no_grad():
                logits = model(vx)  # error: eval-mode-missing
                print(step, loss.item(), nn.functional.cross_entropy(logits, vy).item())
