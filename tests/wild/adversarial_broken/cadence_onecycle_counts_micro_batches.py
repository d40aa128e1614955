"""OneCycle made for all batches, stepped once per window of eight."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
EPOCHS, ACC = 4, 8
loader = DataLoader(TensorDataset(torch.randn(320, 4), torch.randint(0, 2, (320,))), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=len(loader) * EPOCHS)
for epoch in range(EPOCHS):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / ACC
        loss.backward()
        if (i + 1) % ACC == 0:
            opt.step()
            opt.zero_grad()
            sched.step()  # error: scheduler-wrong-cadence
    print(epoch, loss.item() * ACC)
