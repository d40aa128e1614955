"""OneCycle made for all batches, stepped after each epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
EPOCHS = 5
loader = DataLoader(TensorDataset(torch.randn(160, 4), torch.randint(0, 2, (160,))), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, steps_per_epoch=len(loader), epochs=EPOCHS)
for epoch in range(EPOCHS):
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    sched.step()  # error: scheduler-wrong-cadence
    print(epoch, sched.get_last_lr())
