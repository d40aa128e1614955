"""A cosine schedule with T_max in updates, with accumulation and warm-up by LinearLR shorter than the horizon."""
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
EPOCHS, ACC = 4, 2
loader = DataLoader(TensorDataset(torch.randn(200, 5), torch.randn(200, 1)), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 1))
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
updates = EPOCHS * len(loader) // ACC
warm = LinearLR(opt, start_factor=0.1, total_iters=updates // 10)
cool = CosineAnnealingLR(opt, T_max=updates - updates // 10)
sched = SequentialLR(opt, [warm, cool], milestones=[updates // 10])
for epoch in range(EPOCHS):
    for i, (x, y) in enumerate(loader):
        (nn.functional.huber_loss(model(x), y) / ACC).backward()
        if i % ACC == ACC - 1:
            opt.step()
            opt.zero_grad()
            sched.step()
print(opt.param_groups[0]["lr"])
