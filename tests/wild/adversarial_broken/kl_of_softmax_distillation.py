"""Knowledge distillation where KLDivLoss gets the student's softmax instead of its log_softmax."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
student = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
distill = nn.KLDivLoss(reduction="batchmean")
T, alpha = 4.0, 0.7


def distillation_loss(logits, labels, teacher_logits):
    soft = distill(F.softmax(logits / T, dim=1), F.softmax(teacher_logits / T, dim=1))  # error: logits-into-probability-loss
    return alpha * T * T * soft + (1 - alpha) * F.cross_entropy(logits, labels)


x = torch.randn(320, 10)
y = teacher(x).argmax(1)
for epoch in range(4):
    for inputs, labels in zip(x.split(32), y.split(32)):
        with torch.no_grad():
            teacher_logits = teacher(inputs)
        loss = distillation_loss(student(inputs), labels, teacher_logits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
