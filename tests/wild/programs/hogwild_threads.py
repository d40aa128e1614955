"""Hogwild: several threads update one shared model without locks, each with its optimizer and batches."""
import queue
import threading

import torch
import torch.nn as nn

torch.manual_seed(0)
shared = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
shared.share_memory()
truth = torch.randn(10)
losses: "queue.Queue[tuple[int, float]]" = queue.Queue()


def worker(rank: int, turn: list, lock: threading.Condition, n_workers: int, steps: int):
    gen = torch.Generator().manual_seed(rank)
    replica = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
    opt = torch.optim.SGD(shared.parameters(), lr=0.01)
    for _ in range(steps):
        with lock:  # a fixed order makes the printed numbers the same in every run
            lock.wait_for(lambda: turn[0] % n_workers == rank)
            replica.load_state_dict(shared.state_dict())
            x = torch.randn(32, 10, generator=gen)
            y = (x @ truth).clamp(min=0).unsqueeze(1)
            replica.zero_grad()
            loss = nn.functional.mse_loss(replica(x), y)
            loss.backward()
            for p, q in zip(shared.parameters(), replica.parameters()):
                p.grad = q.grad
            opt.step()
            losses.put((rank, loss.item()))
            turn[0] += 1
            lock.notify_all()


turn, lock = [0], threading.Condition()
threads = [threading.Thread(target=worker, args=(r, turn, lock, 3, 60)) for r in range(3)]
for t in threads:
    t.start()
for t in threads:
    t.join()
seen = [losses.get() for _ in range(losses.qsize())]
print("first", [f"{v:.3f}" for _, v in seen[:3]], "last", [f"{v:.3f}" for _, v in seen[-3:]])
x = torch.randn(500, 10)
with torch.no_grad():
    print("test %.3f" % nn.functional.mse_loss(shared(x), (x @ truth).clamp(min=0).unsqueeze(1)).item())
