"""Nested cross-validation over a small population that exploits and explores; results logged by a thread; multiprocessing prepares data."""
import contextlib
import copy
import json
import queue
import random
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import nn


class Logger(threading.Thread):
    def __init__(self, path):
        super().__init__(daemon=True)
        self.q, self.path = queue.Queue(), path

    def run(self):
        with open(self.path, "w") as f:
            while (row := self.q.get()) is not None:
                f.write(json.dumps(row) + "\n")


class Member:
    def __init__(self, lr, wd):
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.hyper = {"lr": lr, "weight_decay": wd}
        self.opt = torch.optim.AdamW(self.net.parameters(), **self.hyper)
        self.score = float("inf")

    def train(self, x, y, steps):
        for _ in range(steps):
            i = torch.randint(0, len(x), (32,))
            loss = nn.functional.mse_loss(self.net(x[i]), y[i])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def validate(self, x, y):
        self.score = nn.functional.mse_loss(self.net(x), y).item()
        return self.score

    def exploit(self, other):
        self.net.load_state_dict(other.net.state_dict())
        self.opt.load_state_dict(copy.deepcopy(other.opt.state_dict()))
        for g in self.opt.param_groups:
            g["lr"] = other.opt.param_groups[0]["lr"] * random.choice([0.7, 1.4])


def prepare(seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(60, 4, generator=g)
    return x, (x[:, :1] * x[:, 1:2]).tanh() + x[:, 2:3]


def main(folder):
    random.seed(0)
    torch.manual_seed(0)
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(prepare, range(4)))
    log = Logger(Path(folder, "log.jsonl"))
    log.start()
    outer = []
    for k in range(2):
        test = parts[k]
        inner = [p for j, p in enumerate(parts) if j != k]
        members = [Member(lr, wd) for lr in (1e-3, 1e-2) for wd in (0.0, 1e-2)]
        for generation in range(4):
            vx, vy = inner[generation % 3]
            tx, ty = (torch.cat(t) for t in zip(*(p for j, p in enumerate(inner) if j != generation % 3)))
            for m in members:
                m.train(tx, ty, 12)
                m.validate(vx, vy)
            members.sort(key=lambda m: m.score)
            members[-1].exploit(members[0])
            log.q.put({"fold": k, "generation": generation, "scores": [round(m.score, 4) for m in members]})
        outer.append(members[0].validate(*test))
        print("fold", k, f"{outer[-1]:.4f}", {h: round(float(v), 5) for h, v in members[0].hyper.items()})
    log.q.put(None)
    log.join()
    print(len(log.path.read_text().splitlines()), "rows", round(sum(outer) / 2, 4))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(folder))
