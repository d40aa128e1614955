import copy

import torch
from _state import tell
from torch import nn

torch.manual_seed(10)
student = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
teacher = copy.deepcopy(student).requires_grad_(False).eval()
averaged = torch.optim.swa_utils.AveragedModel(student)
optimizer = torch.optim.SGD(student.parameters(), 0.1)
for step in range(20):
    x = torch.randn(16, 8)
    with torch.no_grad():
        soft = teacher(x).softmax(1)
    optimizer.zero_grad()
    loss = nn.functional.kl_div(student(x).log_softmax(1), soft, reduction="batchmean")
    loss.backward()
    optimizer.step()
    averaged.update_parameters(student)
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
            old.lerp_(new, 0.05)
    print(step, repr(loss.item()))
torch.optim.swa_utils.update_bn([torch.randn(16, 8) for _ in range(3)], averaged)
tell(student, teacher, averaged, optimizer)
