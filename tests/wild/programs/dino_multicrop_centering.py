"""DINO-like self-distillation: two global and two local crops, centred and sharpened teacher, last layer frozen for the first epoch."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class DINOHead(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, 16))
        self.last_layer = nn.Linear(16, out, bias=False)

    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1))


class Network(nn.Module):
    def __init__(self, out=24):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(16, 48), nn.LayerNorm(48), nn.GELU(), nn.Linear(48, 24))
        self.head = DINOHead(24, out)

    def forward(self, crops):
        return self.head(self.backbone(torch.cat(crops)))


class DINOLoss(nn.Module):
    def __init__(self, out, student_temp=0.2, teacher_temp=0.1, momentum=0.9):
        super().__init__()
        self.student_temp, self.teacher_temp, self.momentum = student_temp, teacher_temp, momentum
        self.register_buffer("center", torch.zeros(1, out))

    def forward(self, student, teacher, n):
        student = (student / self.student_temp).split(n)
        targets = F.softmax((teacher - self.center) / self.teacher_temp, dim=-1).detach().split(n)
        total, terms = 0.0, 0
        for i, q in enumerate(targets):
            for j, s in enumerate(student):
                if i == j:
                    continue
                total = total + (-q * F.log_softmax(s, dim=-1)).sum(-1).mean()
                terms += 1
        self.update_center(teacher)
        return total / terms

    @torch.no_grad()
    def update_center(self, teacher):
        self.center.mul_(self.momentum).add_(teacher.mean(0, keepdim=True), alpha=1 - self.momentum)


def crops(x):
    strong = [x + 0.2 * torch.randn_like(x) for _ in range(2)]
    local = [x * (torch.rand_like(x) > 0.5) for _ in range(2)]
    return strong, local


def cancel_gradients_last_layer(epoch, model, freeze=1):
    if epoch >= freeze:
        return
    for name, p in model.named_parameters():
        if "last_layer" in name:
            p.grad = None


def main(epochs=5):
    torch.manual_seed(2)
    centres = 1.5 * torch.randn(8, 16)
    data = centres[torch.randint(0, 8, (512,))] + 0.3 * torch.randn(512, 16)
    student = Network()
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad = False
    criterion = DINOLoss(24)
    optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3)
    for epoch in range(epochs):
        running = 0.0
        for batch in data[torch.randperm(len(data))].split(64):
            strong, local = crops(batch)
            teacher_out = teacher(strong)
            student_out = student(strong + local)
            loss = criterion(student_out, teacher_out, len(batch))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(student.parameters(), 3.0)
            cancel_gradients_last_layer(epoch, student)
            optimizer.step()
            with torch.no_grad():
                for ps, pt in zip(student.parameters(), teacher.parameters()):
                    pt.data.mul_(0.97).add_(0.03 * ps.detach().data)
            running += loss.item()
        print(f"epoch {epoch} loss {running / 8:.4f}")
    teacher.eval()
    with torch.no_grad():
        used = teacher([data]).argmax(1).unique().numel()
    print("prototypes in use", used)


main()
