"""A small encoder learns the similarities of a larger one to anchors; at a high temperature their differences count."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
T = 10.0
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16.0, dtype=torch.float32), torch.tensor(digits)
teacher, head = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 32)), nn.Linear(32, 10)
optimizer = torch.optim.Adam([*teacher.parameters(), *head.parameters()], lr=3e-3)
for step in range(150):
    rows = torch.randint(0, len(x), (64,))
    loss = F.cross_entropy(head(teacher(x[rows])), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
teacher.requires_grad_(False)
student = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 32))
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
anchors = F.normalize(teacher(x[:200]), dim=1)
for step in range(300):
    batch = x[200:][torch.randint(0, len(x) - 200, (64,))]
    with torch.no_grad():
        wanted = F.normalize(teacher(batch), dim=1) @ anchors.T
    found = F.normalize(student(batch), dim=1) @ anchors.T
    loss = T**2 * F.kl_div((found / T).log_softmax(1), (wanted / T).softmax(1), reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
