"""Healthy: batches made by a background thread and a queue; a second, smaller model trained meanwhile in another thread."""
import queue
import threading

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)


def producer(out, n_batches, seed, stop):
    rng = np.random.default_rng(seed)
    for _ in range(n_batches):
        if stop.is_set():
            break
        x = rng.normal(size=(32, 6)).astype(np.float32)
        out.put((torch.from_numpy(x), torch.from_numpy((x[:, :1] * x[:, 1:2] + x[:, 2:3]).astype(np.float32))))
    out.put(None)


class Prefetcher:
    def __init__(self, n_batches, seed, depth=4):
        self.queue, self.stop = queue.Queue(maxsize=depth), threading.Event()
        self.thread = threading.Thread(target=producer, args=(self.queue, n_batches, seed, self.stop), daemon=True)
        self.thread.start()

    def __iter__(self):
        while (batch := self.queue.get()) is not None:
            yield batch
        self.thread.join()


def train(net, n_batches, seed, lr, losses):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    for x, y in Prefetcher(n_batches, seed):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


torch.manual_seed(0)
large = nn.Sequential(nn.Linear(6, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
small = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 1))
losses = {"large": [], "small": []}
second = threading.Thread(target=train, args=(small, 120, 1, 1e-2, losses["small"]))
second.start()
train(large, 200, 2, 5e-3, losses["large"])
second.join()
for name, values in losses.items():
    print(f"{name}: {len(values)} steps, loss {np.mean(values[:10]):.3f} -> {np.mean(values[-10:]):.3f}")
