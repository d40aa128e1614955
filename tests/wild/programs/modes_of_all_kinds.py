"""User modes around training: a mode that logs and prints every module-level op, a device context, autocast inside modes, a mode that replaces dropout."""
import torch
import torch.nn as nn
from torch.overrides import BaseTorchFunctionMode, TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode


class NoDropout(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.dropout:
            return args[0]
        return func(*args, **(kwargs or {}))


class FirstNames(TorchFunctionMode):
    def __init__(self, n):
        super().__init__()
        self.names, self.n = [], n

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if len(self.names) < self.n:
            self.names.append(resolve_name(func) or getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


class Refuse(TorchDispatchMode):
    """A guard for a team's rule: no copies of numbers to python in the training step."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("no .item() in here")
        return func(*args, **(kwargs or {}))


class Memory(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.elements += out.numel()
        return out


torch.manual_seed(0)
torch.set_default_device("cpu")
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(32), nn.Linear(32, 3))
opt = torch.optim.AdamW(net.parameters(), lr=1e-2, foreach=False)
names, totals = [], []
for step in range(80):
    x = torch.randn(64, 6)
    y = x[:, :3].argmax(1)
    with FirstNames(400) as first, NoDropout(), Memory() as memory, Refuse():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step % 2 == 0):
            loss = nn.functional.cross_entropy(net(x).float(), y)
        opt.zero_grad()
        loss.backward()
    with BaseTorchFunctionMode(), Memory() as second:
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
    names.append(tuple(first.names))
    totals.append((memory.elements, second.elements))
print(names[0][:6], [len(n) for n in names[:12]])
print(len(set(names)), sorted(set(totals)))
net.eval()
with torch.no_grad(), FirstNames(10**6) as first, Memory() as memory:
    x = torch.randn(300, 6)
    print("accuracy", (net(x).argmax(1) == x[:, :3].argmax(1)).float().mean().item())
print(len(first.names), memory.elements)
state = net.state_dict()
with FirstNames(10**6) as first, Memory() as memory:
    net.load_state_dict(state)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
    sched.step(loss.detach())
    for p in net.parameters():
        p.requires_grad_(False)
    net.train()
print(len(first.names), memory.elements)
