"""A warm-up of five epochs in a run of six, and milestones counted in steps: each at the pace it is made for."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LinearLR, MultiStepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(240, 6)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=8, shuffle=True)
epochs = 6
for kind in ("linear", "lambda", "milestones", "early milestones"):
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if kind == "linear":
        schedule = LinearLR(optimizer, 0.01, 1.0, total_iters=5)
    elif kind == "lambda":
        schedule = LambdaLR(optimizer, lambda epoch: min(1.0, (epoch + 1) / 25))
    elif kind == "milestones":
        schedule = MultiStepLR(optimizer, [90, 150], gamma=0.1)
    else:
        schedule = MultiStepLR(optimizer, [1], gamma=0.3)
    for epoch in range(epochs):
        for inputs, target in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), target).backward()
            optimizer.step()
            if "milestones" in kind:
                schedule.step()
        if "milestones" not in kind:
            schedule.step()
    print(kind, schedule.get_last_lr())
