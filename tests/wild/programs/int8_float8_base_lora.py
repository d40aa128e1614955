"""QLoRA in miniature: int8 and float8 frozen weights as parameters, LoRA adapters of rank 4 trained by a hand-written optimizer over everything."""
import torch
from torch import nn
from torch.optim import Optimizer

torch.manual_seed(0)


class Int8Linear(nn.Module):
    def __init__(self, linear, rank=4):
        super().__init__()
        w = linear.weight.data
        self.scale = nn.Parameter(w.abs().amax(1, keepdim=True) / 127, requires_grad=False)
        self.weight = nn.Parameter((w / self.scale).round().to(torch.int8), requires_grad=False)
        self.bias = nn.Parameter(linear.bias.data.clone(), requires_grad=False)
        self.A, self.B = nn.Parameter(torch.randn(rank, w.size(1)) * 0.1), nn.Parameter(torch.zeros(w.size(0), rank))

    def forward(self, x):
        return x @ (self.weight * self.scale).t() + self.bias + x @ self.A.t() @ self.B.t()


class Float8Linear(Int8Linear):
    def __init__(self, linear, rank=4):
        super().__init__(linear, rank)
        self.weight = nn.Parameter((linear.weight.data / self.scale / 127).to(torch.float8_e4m3fn), requires_grad=False)

    def forward(self, x):
        w = self.weight.to(torch.float32) * self.scale * 127
        return x @ w.t() + self.bias + x @ self.A.t() @ self.B.t()


class SignSGD(Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                if p.grad is not None:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    m.lerp_(p.grad, 0.1)
                    p.add_(m.sign(), alpha=-g["lr"])


base = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
opt = torch.optim.Adam(base.parameters(), lr=1e-2)
task = lambda x, k: (x[:, k : k + 3]).argmax(1)
for _ in range(80):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(base(x), task(x, 0))
    opt.zero_grad(); loss.backward(); opt.step()
print("pretrained", round(loss.item(), 3))
net = nn.Sequential(Int8Linear(base[0]), nn.ReLU(), Float8Linear(base[2]), nn.ReLU(), Int8Linear(base[4]))
print({str(p.dtype) for p in net.parameters()}, sum(p.numel() for p in net.parameters() if p.requires_grad))
opt = SignSGD(net.parameters(), lr=4e-3)
for step in range(120):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(net(x), task(x, 4))
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 40 == 0:
        print("adapters", step, round(loss.item(), 3))
print("end", round(loss.item(), 3))
torch.save({k: v for k, v in net.state_dict().items() if k.split(".")[-1] in "AB"}, __import__("io").BytesIO())
