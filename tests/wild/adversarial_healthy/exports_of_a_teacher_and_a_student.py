"""A teacher in evaluation mode is exported, and its program labels the batches of a student.

The graph of the student is exported in train mode, since it is trained further: it is saved after it was exported again.
At last, the dropout of the teacher is set to train mode on purpose, and the rest of it stays in evaluation mode.
"""

import io

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 2))
student = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))


optimizer = torch.optim.Adam(teacher.parameters(), lr=0.01)
for _step in range(60):
    rows = torch.randint(256, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(teacher(x[rows]), y[rows]).backward()
    optimizer.step()
teacher.eval()
program = torch.export.export(teacher, (x[:32],))
torch.export.save(program, io.BytesIO())
labels = program.module()

graph = torch.export.export(student, (x[:32],)).module()
optimizer = torch.optim.Adam(graph.parameters(), lr=0.01)
for _step in range(60):
    rows = torch.randint(256, (32,))
    with torch.no_grad():
        soft = labels(x[rows]).softmax(1)
    optimizer.zero_grad()
    nn.functional.cross_entropy(graph(x[rows]), soft).backward()
    optimizer.step()
student.load_state_dict(graph.state_dict())
student.eval()
torch.export.save(torch.export.export(student, (x[:32],)), io.BytesIO())

for module in teacher.modules():
    if isinstance(module, nn.Dropout):
        module.train()
torch.export.save(torch.export.export(teacher, (x[:32],)), io.BytesIO())
