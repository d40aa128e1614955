"""Functional dropout that belongs to the task: corrupted inputs, random masks, a noisy teacher, a frozen noisy encoder."""
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(160, 6) @ torch.randn(6, 12)
train_loader = DataLoader(TensorDataset(x[:128]), 16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[128:]), 8)


class Denoising(nn.Module):
    """Rebuilds its input from a corrupted one, in evaluation too: that is the task."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(12, 8), nn.Linear(8, 12)

    def forward(self, x):
        corrupted = F.dropout(x.flatten(1), 0.3)
        mask = F.dropout(torch.ones_like(corrupted), 0.1)
        return self.decoder(torch.tanh(self.encoder(corrupted * mask)))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(12, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(F.dropout(torch.relu(self.body(x)), 0.2))


model = Denoising()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(3):
    model.train()
    for (inputs,) in train_loader:
        optimizer.zero_grad()
        F.mse_loss(model(inputs), inputs).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum(F.mse_loss(model(inputs), inputs).item() for (inputs,) in val_loader))

student = Student()
teacher = copy.deepcopy(student).eval().requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), 0.1)
for epoch in range(3):
    for (inputs,) in train_loader:
        with torch.no_grad():
            wanted = teacher(inputs)
        optimizer.zero_grad()
        F.mse_loss(student(inputs), wanted).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters()):
                slow.lerp_(fast, 0.05)
    with torch.no_grad():
        spread = sum(teacher(inputs).std().item() for (inputs,) in val_loader)
    print(epoch, spread)
