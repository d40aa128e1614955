"""Training loops as generators, coroutines and context managers: a scheduler advances two experiments alternately."""
import asyncio
import contextlib
import functools
import io
import torch
from torch import nn


def experiment(name, lr):
    torch.manual_seed(len(name))
    net = nn.Sequential(nn.Linear(3, 20), nn.Softplus(), nn.Linear(20, 1))
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9, nesterov=True)
    while True:
        x = torch.rand(64, 3)
        with update(opt) as tape:
            tape.loss = nn.functional.mse_loss(net(x).squeeze(1), (x * 3).sin().sum(1))
        command = yield tape.loss.item()
        if command == "state":
            buffer = io.BytesIO()
            torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, buffer)
            yield buffer
        elif command is not None:
            for g in opt.param_groups:
                g["lr"] = command


@contextlib.contextmanager
def update(opt):
    class Tape:
        loss = None

    tape = Tape()
    yield tape
    opt.zero_grad()
    tape.loss.backward()
    opt.step()


def resume(buffer):
    buffer.seek(0)
    state = torch.load(buffer, weights_only=True)
    net = nn.Sequential(nn.Linear(3, 20), nn.Softplus(), nn.Linear(20, 1))
    opt = torch.optim.SGD(net.parameters(), lr=1.0)
    net.load_state_dict(state["net"])
    opt.load_state_dict(state["opt"])
    return net, opt


async def producer(queue, n):
    for k in range(n):
        await asyncio.sleep(0)
        x = torch.rand(64, 3)
        await queue.put((x, (x * 3).sin().sum(1)))
    await queue.put(None)


async def consumer(queue, net, opt):
    losses = []
    while (item := await queue.get()) is not None:
        with update(opt) as tape:
            tape.loss = nn.functional.mse_loss(net(item[0]).squeeze(1), item[1])
        losses.append(tape.loss.item())
    return losses


async def main(net, opt):
    queue = asyncio.Queue(2)
    task = asyncio.create_task(producer(queue, 40))
    losses = await consumer(queue, net, opt)
    await task
    return losses


a, b = experiment("alpha", 0.05), experiment("beta2", 0.01)
for step in range(80):
    la, lb = next(a), next(b)
    if step == 40:
        b.send(0.05)
    if step % 20 == 0:
        print(step, f"{la:.4f} {lb:.4f}")
net, opt = resume(a.send("state"))
print("resumed with lr", opt.param_groups[0]["lr"])
losses = asyncio.run(main(net, opt))
print(f"{losses[0]:.4f} {losses[-1]:.4f}")
a.close(); b.close()
