"""A student learns from a frozen teacher, by a divergence of softened outputs."""

import torch
import torch.nn.functional as F
from torch import nn


def distil(teacher: nn.Module, student: nn.Module, loader, temperature: float = 4.0, alpha: float = 0.7):
    teacher.eval()
    for parameter in teacher.parameters():
        parameter.requires_grad = False
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
    student.train()
    for x, y in loader:
        with torch.no_grad():
            soft = F.softmax(teacher(x) / temperature, dim=1)
        logits = student(x)
        kd = F.kl_div(F.log_softmax(logits / temperature, dim=1), soft, reduction="batchmean")  # broken[logits-into-probability-loss]: kd = F.kl_div(F.softmax(logits / temperature, dim=1), soft, reduction="batchmean")
        loss = alpha * temperature**2 * kd + (1 - alpha) * F.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
