"""A wrapper subclass by __torch_dispatch__: parameters that remember in which precision their updates came, trained with a stock optimizer."""
import torch
import torch.nn as nn
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing


class Logged(torch.Tensor):
    """Holds another tensor; every operation runs on the held one and is counted."""

    ops = {}

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device, strides=inner.stride())

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(t, meta, size, stride):
        return Logged(t["inner"])

    def __repr__(self):
        return f"Logged({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.ops[str(func)] = cls.ops.get(str(func), 0) + 1
        unwrap = lambda t: t.inner if isinstance(t, Logged) else t
        out = func(*pytree.tree_map(unwrap, args), **pytree.tree_map(unwrap, kwargs or {}))
        out = pytree.tree_map(lambda t: Logged(t) if isinstance(t, torch.Tensor) else t, out)
        return return_and_correct_aliasing(func, args, kwargs or {}, out)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
for m in net:
    if isinstance(m, nn.Linear):
        m.weight = nn.Parameter(Logged(m.weight.detach()))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=False)
for step in range(60):
    x = torch.randn(64, 6)
    loss = nn.functional.mse_loss(net(x), x[:, :1] * 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 0:
        print(step, loss)
print(sum(Logged.ops.values()), sorted(Logged.ops.items())[:8])
