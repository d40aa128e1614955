"""Pickles everything of __main__: a whole model, an optimizer, a loader, a scheduler, a loss; reads its own source; ends by sys.exit in a finally."""
import atexit
import copy
import inspect
import io
import pickle
import sys
import typing
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    width: int = 24
    losses: typing.List[float] = field(default_factory=list)


class Net(nn.Module):
    def __init__(self, s: Settings):
        super().__init__()
        self.s = s
        self.body = nn.Sequential(nn.Linear(5, s.width), nn.BatchNorm1d(s.width), nn.ReLU(), nn.Linear(s.width, 2))

    def forward(self, x):
        return self.body(x)


def train(net, opt, loader, crit, sched, epochs):
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            loss = crit(net(x), y)
            loss.backward()
            opt.step()
        sched.step()
        net.s.losses.append(round(loss.item(), 4))


def main():
    torch.manual_seed(0)
    x = torch.randn(200, 5)
    loader = DataLoader(TensorDataset(x, (x[:, 0] > x[:, 1]).long()), 20, shuffle=True, generator=torch.Generator().manual_seed(1))
    net = Net(Settings())
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
    crit = nn.CrossEntropyLoss(label_smoothing=0.01)
    train(net, opt, loader, crit, sched, 3)
    bundle = pickle.loads(pickle.dumps((net, opt, sched, crit, loader)))
    net2, opt2, sched2, crit2, loader2 = bundle
    assert opt2.param_groups[0]["params"][0] is next(net2.parameters()) and sched2.optimizer is opt2
    train(net2, opt2, loader2, crit2, sched2, 2)
    train(net, opt, loader, crit, sched, 2)
    print(net.s.losses, net2.s.losses)
    buffer = io.BytesIO()
    torch.save(net2, buffer)
    buffer.seek(0)
    net3 = torch.load(buffer, weights_only=False).eval()
    both = copy.deepcopy({"net": net, "opt": opt})
    train(both["net"], both["opt"], copy.deepcopy(loader), crit, torch.optim.lr_scheduler.ConstantLR(both["opt"], 1.0), 1)
    with torch.no_grad():
        print([round((m.eval()(x).argmax(1) == (x[:, 0] > x[:, 1])).float().mean().item(), 3) for m in (net, net2, net3, both["net"])])
    print(len(inspect.getsource(main).splitlines()), typing.get_type_hints(Settings)["losses"], __name__, sys.argv[1:], Net.__module__, __spec__)
    print(torch.optim.AdamW.step.__name__, pickle.loads(pickle.dumps(nn.functional.cross_entropy)).__name__, len(buffer.getvalue()) > 1000)


atexit.register(print, "goodbye")
if __name__ == "__main__":
    try:
        main()
    finally:
        sys.exit(0)
