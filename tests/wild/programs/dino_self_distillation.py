"""Healthy: DINO: a teacher by EMA, softmax with centring against log_softmax, schedules as arrays by hand, last layer held at first."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def cosine_scheduler(base_value, final_value, epochs, niter_per_ep, warmup_epochs=0):
    warmup = np.linspace(0, base_value, warmup_epochs * niter_per_ep)
    iters = np.arange(epochs * niter_per_ep - len(warmup))
    schedule = final_value + 0.5 * (base_value - final_value) * (1 + np.cos(np.pi * iters / len(iters)))
    return np.concatenate((warmup, schedule))


class DINOHead(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_dim, 32), nn.GELU(), nn.Linear(32, 16))
        self.last_layer = nn.utils.parametrizations.weight_norm(nn.Linear(16, out_dim, bias=False))
        self.last_layer.parametrizations.weight.original0.data.fill_(1)
        self.last_layer.parametrizations.weight.original0.requires_grad = False

    def forward(self, x):
        return self.last_layer(F.normalize(self.mlp(x), dim=-1, p=2))


class MultiCropWrapper(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, crops):
        return self.head(torch.cat([self.backbone(crop) for crop in crops]))


class DINOLoss(nn.Module):
    def __init__(self, out_dim, ncrops):
        super().__init__()
        self.ncrops = ncrops
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student_output, teacher_output):
        student_out = (student_output / 0.1).chunk(self.ncrops)
        teacher_out = F.softmax((teacher_output - self.center) / 0.04, dim=-1).detach().chunk(2)
        total, terms = 0, 0
        for iq, q in enumerate(teacher_out):
            for v in range(len(student_out)):
                if v == iq:
                    continue
                total += torch.sum(-q * F.log_softmax(student_out[v], dim=-1), dim=-1).mean()
                terms += 1
        self.update_center(teacher_output)
        return total / terms

    @torch.no_grad()
    def update_center(self, teacher_output):
        self.center = self.center * 0.9 + teacher_output.mean(0, keepdim=True) * 0.1


def cancel_gradients_last_layer(epoch, model, freeze_last_layer):
    if epoch >= freeze_last_layer:
        return
    for n, p in model.named_parameters():
        if "last_layer" in n:
            p.grad = None


def get_params_groups(model):
    regularized, not_regularized = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        (not_regularized if name.endswith(".bias") or len(param.shape) == 1 else regularized).append(param)
    return [{"params": regularized}, {"params": not_regularized, "weight_decay": 0.0}]


def build():
    backbone = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 16))
    return MultiCropWrapper(backbone, DINOHead(16, 24))


torch.manual_seed(0)
torch.set_num_threads(1)
student, teacher = build(), build()
teacher.load_state_dict(student.state_dict())
for p in teacher.parameters():
    p.requires_grad = False
dino_loss = DINOLoss(24, ncrops=4)
optimizer = torch.optim.AdamW(get_params_groups(student))
centers, epochs, niter = 2 * torch.randn(8, 12), 6, 15
lr_schedule = cosine_scheduler(5e-3, 1e-5, epochs, niter, warmup_epochs=1)
wd_schedule = cosine_scheduler(0.04, 0.4, epochs, niter)
momentum_schedule = cosine_scheduler(0.95, 1, epochs, niter)
for epoch in range(epochs):
    for it in range(niter):
        x = centers[torch.randint(0, 8, (48,))] + 0.3 * torch.randn(48, 12)
        crops = [x + 0.2 * torch.randn_like(x) for _ in range(2)] + [x * (torch.rand_like(x) > 0.3) for _ in range(2)]
        it = niter * epoch + it
        for i, param_group in enumerate(optimizer.param_groups):
            param_group["lr"] = lr_schedule[it]
            if i == 0:
                param_group["weight_decay"] = wd_schedule[it]
        teacher_output = teacher(crops[:2])
        student_output = student(crops)
        loss = dino_loss(student_output, teacher_output)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 3.0)
        cancel_gradients_last_layer(epoch, student, freeze_last_layer=1)
        optimizer.step()
        with torch.no_grad():
            m = momentum_schedule[it]
            for param_q, param_k in zip(student.parameters(), teacher.parameters()):
                param_k.data.mul_(m).add_((1 - m) * param_q.detach().data)
    print(f"Epoch {epoch}: loss {loss.item():.3f} lr {optimizer.param_groups[0]['lr']:.5f}")
with torch.no_grad():
    z = F.normalize(teacher.eval().backbone(centers), dim=1)
print("mean cosine of different centres", round(((z @ z.T).sum().item() - 8) / 56, 3))
