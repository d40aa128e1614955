"""Distil a trained digit classifier into a much smaller one."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

TEMPERATURE, ALPHA = 3.0, 0.8


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def distillation_loss(student_logits, teacher_logits, labels):
    soft = F.kl_div(F.log_softmax(student_logits / TEMPERATURE, dim=1),
                    F.softmax(teacher_logits / TEMPERATURE, dim=1),
                    reduction="batchmean") * TEMPERATURE ** 2
    hard = F.cross_entropy(student_logits, labels)
    return ALPHA * soft + (1 - ALPHA) * hard


def train_teacher(teacher, loader, epochs):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=2e-3)
    teacher.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(teacher(x), y).backward()
            optimizer.step()


def train_student(student, teacher, loader, optimizer):
    student.train()
    teacher.eval()
    total = 0.0
    for x, y in loader:
        with torch.no_grad():
            teacher_logits = teacher(x)
        loss = distillation_loss(student(x), teacher_logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, correct = 0.0, 0
    for x, y in loader:
        logits = model(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += (logits.argmax(1) == y).sum().item()
    n = len(loader.dataset)
    return loss / n, correct / n


def main():
    torch.manual_seed(27)
    X, y = load_digits(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=27)
    to_set = lambda a, b: TensorDataset(torch.tensor(a / 16.0, dtype=torch.float32), torch.tensor(b))
    train_loader = DataLoader(to_set(X_train, y_train), batch_size=64, shuffle=True)
    val_loader = DataLoader(to_set(X_val, y_val), batch_size=256)

    teacher = mlp(64, 128, 128, 10)
    train_teacher(teacher, train_loader, epochs=20)
    print("teacher: val loss %.4f acc %.4f" % evaluate(teacher, val_loader))

    student = mlp(64, 12, 10)
    optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
    for epoch in range(1, 31):
        train_loss = train_student(student, teacher, train_loader, optimizer)
        if epoch % 6 == 0:
            val_loss, val_acc = evaluate(student, val_loader)
            print(f"student epoch {epoch:2d}: train {train_loss:.4f} val loss {val_loss:.4f} acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
