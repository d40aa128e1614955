"""A strict script: every warning is an error, deterministic algorithms, anomaly handlers, own recursion and gc settings."""
import gc
import os
import sys
import warnings

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch

warnings.simplefilter("error")
torch.use_deterministic_algorithms(True)
torch.set_flush_denormal(True)
sys.setrecursionlimit(400)
gc.disable()


def main() -> int:
    torch.manual_seed(7)
    table = torch.nn.EmbeddingBag(50, 16, mode="mean", include_last_offset=True)
    head = torch.nn.Linear(16, 2)
    params = [*table.parameters(), *head.parameters()]
    opt = torch.optim.RMSprop(params, lr=1e-2, centered=True, momentum=0.5)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=120, eta_min=1e-4)
    good = set(range(0, 50, 2))
    losses = []
    for step in range(120):
        bags = [torch.randint(0, 50, (int(n),)) for n in torch.randint(1, 12, (32,))]
        labels = torch.tensor([int(sum(1 if int(w) in good else -1 for w in bag) > 0) for bag in bags])
        offsets = torch.tensor([0, *map(len, bags)]).cumsum(0)
        loss = torch.nn.functional.cross_entropy(head(table(torch.cat(bags), offsets)), labels)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    print("first", [round(v, 3) for v in losses[:3]], "last", [round(v, 3) for v in losses[-3:]])
    print("lr at the end", sched.get_last_lr())
    print("garbage", len(gc.garbage), "recursion limit", sys.getrecursionlimit())
    return 0


if __name__ == "__main__":
    sys.exit(main())
