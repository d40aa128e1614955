"""Coverage by sys.settrace, an alarm that interrupts training, KeyboardInterrupt caught, redirected output, an exception used to stop."""
import contextlib
import faulthandler
import io
import logging
import os
import signal
import sys
import threading

import torch
from torch import nn

faulthandler.enable()
lines = set()


def tracer(frame, event, arg):
    if frame.f_code.co_filename != __file__:
        return None
    if event == "line":
        lines.add(frame.f_lineno)
    return tracer


class Enough(Exception):
    pass


def train(limit, inside=None):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for step in range(limit):
        x = torch.randn(64, 4)
        loss = nn.functional.mse_loss(net(x), x.prod(1, keepdim=True) + x[:, :1])
        opt.zero_grad()
        loss.backward()
        if inside:
            inside(step, loss.item())
        opt.step()
    return round(loss.item(), 4)


sys.settrace(tracer)
first = train(30)
sys.settrace(None)
print("traced", first, len(lines))
calls = [0]
sys.setprofile(lambda f, e, a: calls.__setitem__(0, calls[0] + (e == "call" and f.f_code.co_filename == __file__)))
second = train(30)
sys.setprofile(None)
print("profiled", second, calls[0])


def stop_at(step, value):
    if step == 20:
        raise Enough(f"{value:.4f}")


try:
    train(100, stop_at)
except Enough as e:
    print("enough", e)


def interrupt(step, value):
    if step == 15:
        os.kill(os.getpid(), signal.SIGINT)


try:
    train(100, interrupt)
except KeyboardInterrupt:
    print("interrupted")

hits = []
signal.signal(signal.SIGUSR1, lambda s, f: hits.append(f.f_code.co_name != ""))
train(12, lambda step, value: os.kill(os.getpid(), signal.SIGUSR1))
print("signals", len(hits))
out = io.StringIO()
with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
    logging.warning("inside")
    print(train(20))
print("captured", out.getvalue().split())
limit = sys.getrecursionlimit()
sys.setrecursionlimit(200)
print("shallow", train(10))
sys.setrecursionlimit(limit)
t = threading.Timer(0.01, lambda: None)
t.start()
t.join()
print("threads", threading.active_count(), "end", train(60))
