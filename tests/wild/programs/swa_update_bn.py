"""Healthy: stochastic weight averaging: AveragedModel, SWALR, update_bn in train mode without gradients, then evaluation."""
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

W = torch.randn(10, 4)
x = torch.randn(1280, 10)
t = (x @ W + 0.5 * torch.randn(1280, 4)).argmax(1)
loader = DataLoader(TensorDataset(x[:1024], t[:1024]), batch_size=64, shuffle=True)
test_loader = DataLoader(TensorDataset(x[1024:], t[1024:]), batch_size=128)

model = nn.Sequential(nn.Linear(10, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(),
                      nn.Linear(32, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

swa_model = AveragedModel(model)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
swa_start = 6
swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)


def accuracy(net):
    net.eval()
    correct = 0
    with torch.no_grad():
        for input, target in test_loader:
            correct += (net(input).argmax(1) == target).sum().item()
    return correct / len(test_loader.dataset)


for epoch in range(10):
    model.train()
    for input, target in loader:
        optimizer.zero_grad()
        loss_fn(model(input), target).backward()
        optimizer.step()
    if epoch >= swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()

# Update bn statistics for the swa_model at the end
update_bn(loader, swa_model)
print(f"last iterate {accuracy(model):.4f}, averaged {accuracy(swa_model):.4f}")
