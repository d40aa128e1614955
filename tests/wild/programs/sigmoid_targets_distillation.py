"""Healthy: multi-label distillation, the teacher's sigmoid as target of BCEWithLogitsLoss, sigmoid for reading only."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
torch.set_num_threads(1)

x = torch.randn(512, 16)
tags = (x @ torch.randn(16, 6) > 1.0).float()
loader = DataLoader(TensorDataset(x[:384], tags[:384]), batch_size=64, shuffle=True)

teacher = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.full((6,), 1.5))
for epoch in range(6):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(teacher(inputs), labels)
        loss.backward()
        optimizer.step()

teacher.eval()
for parameter in teacher.parameters():
    parameter.requires_grad_(False)

student = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 6))
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
temperature = 2.0
for epoch in range(6):
    hits = total = 0
    for inputs, labels in loader:
        with torch.no_grad():
            soft = torch.sigmoid(teacher(inputs) / temperature)
        logits = student(inputs)
        hard = F.binary_cross_entropy_with_logits(logits, labels)
        loss = 0.5 * hard + 0.5 * temperature**2 * F.binary_cross_entropy_with_logits(logits / temperature, soft)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        predicted = torch.sigmoid(logits.detach()) > 0.5
        hits += (predicted == labels.bool()).sum().item()
        total += labels.numel()
    print(f"epoch {epoch}: {hits / total:.3f}")

student.eval()
with torch.no_grad():
    accuracy = ((student(x[384:]) > 0) == tags[384:].bool()).float().mean().item()
print(f"accuracy {accuracy:.3f}")
