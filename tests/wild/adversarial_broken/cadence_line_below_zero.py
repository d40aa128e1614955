"""The learning rate of CycleGAN, constant and then a line to zero over epochs, stepped for every batch: below zero."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
CONSTANT, FALLING = 4, 6


def rule(epoch):
    return 1.0 - max(0, epoch + 1 - CONSTANT) / (FALLING + 1)


x = torch.randn(120, 6)
loader = DataLoader(TensorDataset(x, x.pow(2).sum(1, keepdim=True)), batch_size=10, shuffle=True)
net = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-4)
plan = torch.optim.lr_scheduler.LambdaLR(opt, lr_lambda=rule)
for epoch in range(CONSTANT + FALLING):
    for inputs, target in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), target)
        loss.backward()
        opt.step()
        plan.step()  # error: scheduler-wrong-cadence
    print(epoch, loss.item(), plan.get_last_lr())
