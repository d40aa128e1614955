"""Knowledge distillation on the 8x8 digits: a wide CNN teaches a tiny MLP."""
from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    seed: int = 1
    batch_size: int = 64
    teacher_epochs: int = 8
    student_epochs: int = 20
    teacher_lr: float = 3e-3
    student_lr: float = 1e-2
    temperature: float = 4.0
    alpha: float = 0.8          # weight of the soft part
    student_hidden: int = 32
    labelled: int = 120         # labels known to the student; the teacher has them all


class Teacher(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.4))
        self.head = nn.Linear(32 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


class Student(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.BatchNorm1d(hidden),
                                 nn.ReLU(), nn.Linear(hidden, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def load(cfg: Config):
    x, y = load_digits(return_X_y=True)
    x_train, x_rest, y_train, y_rest = train_test_split(
        x, y, test_size=0.6, random_state=cfg.seed, stratify=y)
    x_val, x_test, y_val, y_test = train_test_split(
        x_rest, y_rest, test_size=0.6, random_state=cfg.seed, stratify=y_rest)
    mean, std = x_train.mean(), x_train.std()
    known = np.zeros(len(y_train), dtype=bool)
    known[:cfg.labelled] = True

    def pack(a, b, *more):
        a = torch.tensor((a - mean) / std, dtype=torch.float32).view(-1, 1, 8, 8)
        return TensorDataset(a, torch.tensor(b), *[torch.tensor(m) for m in more])

    return pack(x_train, y_train, known), pack(x_val, y_val), pack(x_test, y_test)


def batches(data: TensorDataset, size: int):
    for idx in torch.randperm(len(data)).split(size):
        yield data[idx]


def augment(x: Tensor) -> Tensor:
    """Move each image sideways by at most one pixel, with background at the border."""
    padded = F.pad(x, (1, 1), value=float(x.min()))
    moves = padded.unfold(3, 8, 1)                       # (n, 1, 8, 3, 8)
    return moves[torch.arange(len(x)), :, :, torch.randint(0, 3, (len(x),))]


def distillation_loss(student: Tensor, teacher: Tensor, target: Tensor, known: Tensor, cfg: Config) -> Tensor:
    t = cfg.temperature
    soft = F.kl_div(F.log_softmax(student / t, dim=1), F.softmax(teacher / t, dim=1),
                    reduction="batchmean") * t * t
    hard = F.cross_entropy(student, target, reduction="none")
    hard = (hard * known).sum() / known.sum().clamp(min=1)
    return cfg.alpha * soft + (1 - cfg.alpha) * hard


@torch.no_grad()
def evaluate(model: nn.Module, data: TensorDataset) -> tuple[float, float]:
    model.eval()
    correct, nll = 0, 0.0
    for x, y in DataLoader(data, batch_size=200):
        out = model(x)
        correct += (out.argmax(1) == y).sum().item()
        nll += F.cross_entropy(out, y, reduction="sum").item()
    return correct / len(data), nll / len(data)


def train_teacher(cfg: Config, train, val) -> Teacher:
    teacher = Teacher()
    opt = torch.optim.Adam(teacher.parameters(), lr=cfg.teacher_lr)
    for epoch in range(cfg.teacher_epochs):
        teacher.train()
        for x, y, _ in batches(train, cfg.batch_size):
            loss = F.cross_entropy(teacher(augment(x)), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
    print("teacher val acc %.4f nll %.5f" % evaluate(teacher, val))
    return teacher


def train_student(cfg: Config, train, val, teacher: Teacher | None) -> Student:
    torch.manual_seed(cfg.seed + 1)
    student = Student(cfg.student_hidden)
    opt = torch.optim.Adam(student.parameters(), lr=cfg.student_lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=cfg.student_epochs)
    if teacher is not None:
        teacher.eval()
        teacher.requires_grad_(False)
    best_nll, best = float("inf"), None
    for epoch in range(cfg.student_epochs):
        student.train()
        for x, y, known in batches(train, cfg.batch_size):
            x = augment(x)
            out = student(x)
            if teacher is None:
                loss = F.cross_entropy(out[known], y[known])
            else:
                with torch.no_grad():
                    guide = teacher(x)
                loss = distillation_loss(out, guide, y, known, cfg)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        sched.step()
        _, nll = evaluate(student, val)
        if nll < best_nll:
            best_nll, best = nll, copy.deepcopy(student.state_dict())
    student.load_state_dict(best)
    return student


def main(cfg: Config) -> None:
    torch.manual_seed(cfg.seed)
    train, val, test = load(cfg)
    teacher = train_teacher(cfg, train, val)
    alone = train_student(cfg, train, val, None)
    taught = train_student(cfg, train, val, teacher)
    for name, model in (("teacher", teacher), ("student alone", alone), ("student distilled", taught)):
        print(f"{name:18s} test acc %.4f nll %.5f" % evaluate(model, test))


if __name__ == "__main__":
    main(Config())
