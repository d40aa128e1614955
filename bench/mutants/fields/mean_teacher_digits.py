"""Semi-supervised digits with a mean teacher, 60 labels."""

import copy

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

DECAY, STEPS, MAX_WEIGHT = 0.97, 400, 8.0


def build():
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 10))


@torch.no_grad()
def update_teacher(teacher, student, decay=DECAY):
    for t, s in zip(teacher.parameters(), student.parameters(), strict=True):
        t.mul_(decay).add_(s, alpha=1 - decay)


def noise(x):
    return x + 0.2 * torch.randn_like(x)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(37)
digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
index = torch.arange(len(x)).numpy()
pool, test = train_test_split(index, test_size=500, stratify=digits.target, random_state=37)
labelled, unlabelled = train_test_split(pool, train_size=60, stratify=digits.target[pool], random_state=37)
labelled, unlabelled, test = (torch.from_numpy(i) for i in (labelled, unlabelled, test))

student = build()
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

for step in range(1, STEPS + 1):
    student.train()
    teacher.train()
    xl, yl = x[labelled], y[labelled]
    xu = x[unlabelled[torch.randint(0, len(unlabelled), (128,))]]
    weight = MAX_WEIGHT * min(1.0, step / 150)
    with torch.no_grad():
        soft = teacher(noise(xu)).softmax(dim=1)
    supervised = nn.functional.cross_entropy(student(noise(xl)), yl)
    consistency = nn.functional.mse_loss(student(noise(xu)).softmax(dim=1), soft)
    loss = supervised + weight * consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_teacher(teacher, student)
    if step % 100 == 0:
        print(f"step {step} supervised {supervised.item():.4f} consistency {consistency.item():.5f}")

print(f"student {accuracy(student, x[test], y[test]):.4f}")
print(f"teacher {accuracy(teacher, x[test], y[test]):.4f}")
