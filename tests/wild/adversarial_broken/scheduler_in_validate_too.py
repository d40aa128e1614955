"""A schedule for epochs is stepped where an epoch of training ends, and again at the end of the validation."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)

x = torch.randn(320, 5)
y = (x.sum(dim=1) > 0).long()
train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
held_out = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)


def train_epoch(model, optimizer, schedule):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    schedule.step()


@torch.no_grad()
def validate(model, schedule):
    model.eval()
    right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in held_out)
    schedule.step()  # error: scheduler-stepped-twice
    return right / 64


model = nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.1), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.7)
for epoch in range(8):
    train_epoch(model, optimizer, schedule)
    print(epoch, validate(model, schedule))
