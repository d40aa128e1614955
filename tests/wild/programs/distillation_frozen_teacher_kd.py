"""Knowledge distillation: the teacher is trained first, then fixed in eval mode; soft and hard losses, a student without distillation beside it."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 10))

    def forward(self, x):
        return self.body(x)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))

    def forward(self, x):
        return self.body(x)


def train_plain(model, loader, epochs, lr=3e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()


def train_distilled(teacher, student, loader, epochs, T=3.0, soft_weight=0.3, lr=3e-3):
    optimizer = torch.optim.Adam(student.parameters(), lr=lr)
    teacher.eval()
    student.train()
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = teacher(inputs)
            student_logits = student(inputs)
            soft = F.kl_div(F.log_softmax(student_logits / T, -1), F.softmax(teacher_logits / T, -1), reduction="batchmean") * T * T
            loss = soft_weight * soft + (1 - soft_weight) * F.cross_entropy(student_logits, labels)
            loss.backward()
            optimizer.step()


def test(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return 100 * right / len(loader.dataset)


torch.manual_seed(42)
bunch = load_digits()
x, y = torch.tensor(bunch.data, dtype=torch.float32) / 16, torch.tensor(bunch.target)
order = torch.randperm(len(x))
train_loader = DataLoader(TensorDataset(x[order[:1300]], y[order[:1300]]), batch_size=65, shuffle=True)
test_loader = DataLoader(TensorDataset(x[order[1300:]], y[order[1300:]]), batch_size=250)
teacher, plain, distilled = Teacher(), Student(), Student()
distilled.load_state_dict(plain.state_dict())
train_plain(teacher, train_loader, 5)
train_plain(plain, train_loader, 10)
train_distilled(teacher, distilled, train_loader, 10)
print(f"teacher {test(teacher, test_loader):.1f} %, student {test(plain, test_loader):.1f} %, distilled {test(distilled, test_loader):.1f} %")
