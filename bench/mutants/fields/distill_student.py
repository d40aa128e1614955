"""Distil a wide teacher into a tiny student on the digits data."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim

TEMPERATURE = 4.0
ALPHA = 0.7


def get_data():
    digits = load_digits()
    x = torch.from_numpy(digits.data).float() / 16
    y = torch.from_numpy(digits.target).long()
    first, second = train_test_split(range(len(x)), test_size=0.3, stratify=y, random_state=7)
    return x[first], y[first], x[second], y[second]


def iterate(x, y, batch_size=50):
    order = torch.randperm(len(x))
    for i in range(0, len(x), batch_size):
        idx = order[i : i + batch_size]
        yield x[idx], y[idx]


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(dim=1) == y).float().mean().item()


def train_teacher(x, y):
    teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 10))
    opt = optim.Adam(teacher.parameters(), lr=1e-3)
    for _ in range(14):
        teacher.train()
        for xb, yb in iterate(x, y):
            opt.zero_grad()
            nn.functional.cross_entropy(teacher(xb), yb).backward()
            opt.step()
    return teacher


def kd_loss(student_logits, teacher_logits, labels):
    log_p = nn.functional.log_softmax(student_logits / TEMPERATURE, dim=1)
    q = nn.functional.softmax(teacher_logits / TEMPERATURE, dim=1)
    soft = nn.functional.kl_div(log_p, q, reduction="batchmean") * TEMPERATURE**2
    hard = nn.functional.cross_entropy(student_logits, labels)
    return ALPHA * soft + (1 - ALPHA) * hard


def train_student(teacher, x, y):
    student = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
    opt = optim.Adam(student.parameters(), lr=1.5e-2)
    teacher.eval()
    for epoch in range(20):
        student.train()
        losses = []
        for xb, yb in iterate(x, y):
            with torch.no_grad():
                t = teacher(xb)
            opt.zero_grad()
            loss = kd_loss(student(xb), t, yb)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1} distillation loss {sum(losses) / len(losses):.4f}")
    return student


torch.manual_seed(11)
x_train, y_train, x_test, y_test = get_data()
teacher = train_teacher(x_train, y_train)
print(f"teacher accuracy {accuracy(teacher, x_test, y_test):.4f}")
student = train_student(teacher, x_train, y_train)
print(f"student accuracy {accuracy(student, x_test, y_test):.4f}")
with torch.no_grad():
    agree = (student(x_test).argmax(1) == teacher(x_test).argmax(1)).float().mean()
    nll = nn.functional.cross_entropy(student(x_test), y_test)
print(f"agreement {agree:.4f}  student nll {nll:.4f}")
