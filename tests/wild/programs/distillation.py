"""Healthy: knowledge distillation: teacher in eval mode without gradients beside a student in train mode."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.fc1 = nn.Linear(16, hidden)
        self.bn = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden, 5)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.bn(self.fc1(x)))))


def loss_fn_kd(student_logits, labels, teacher_logits, alpha, T):
    kd = nn.KLDivLoss(reduction="batchmean")(F.log_softmax(student_logits / T, dim=1),
                                             F.softmax(teacher_logits / T, dim=1)) * (T * T)
    return alpha * kd + (1.0 - alpha) * F.cross_entropy(student_logits, labels)


def train_teacher(teacher, loader, epochs):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    teacher.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(teacher(x), y).backward()
            optimizer.step()


def train_kd(student, teacher, loader, epochs, params):
    student.train()
    teacher.eval()
    optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for x, y in loader:
            output = student(x)
            with torch.no_grad():
                output_teacher = teacher(x)
            loss = loss_fn_kd(output, y, output_teacher, params.alpha, params.temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--alpha", type=float, default=0.7)
    ap.add_argument("--temperature", type=float, default=3.0)
    params = ap.parse_args()
    torch.manual_seed(230)
    torch.set_num_threads(1)

    proto = torch.randn(5, 16)
    y = torch.randint(0, 5, (1200,))
    x = 0.8 * proto[y] + torch.randn(1200, 16)
    train_dl = DataLoader(TensorDataset(x[:960], y[:960]), batch_size=64, shuffle=True)
    dev_dl = DataLoader(TensorDataset(x[960:], y[960:]), batch_size=120)

    teacher, student = MLP(128, 0.3), MLP(8, 0.0)
    train_teacher(teacher, train_dl, 5)
    train_kd(student, teacher, train_dl, 5, params)
    print(f"teacher {evaluate(teacher, dev_dl):.3f}  student {evaluate(student, dev_dl):.3f}")
