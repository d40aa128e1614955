"""Counts floating-point operations and aten calls of every training step with dispatch modes."""
from collections import Counter

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode


class OpCounter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen[str(func)] += 1
        return func(*args, **(kwargs or {}))


class FunctionLog(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.n = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.n += 1
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
X = torch.randn(512, 20)
Y = (X[:, :3] * 2 + X[:, 3:6]).argmax(1)
per_step = []
for step in range(60):
    idx = torch.randint(0, 512, (64,))
    with OpCounter() as ops, FunctionLog() as log, FlopCounterMode(display=False) as flops:
        loss = F.cross_entropy(model(X[idx]), Y[idx])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    per_step.append((sum(ops.seen.values()), log.n, flops.get_total_flops()))
print("first steps", per_step[:4])
print("different counts of aten calls:", len({p[0] for p in per_step[1:]}), "of functions:", len({p[1] for p in per_step[1:]}))
print("most frequent", ops.seen.most_common(6))
model.eval()
with torch.no_grad():
    print("accuracy", (model(X).argmax(1) == Y).float().mean().item())
