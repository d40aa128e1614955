"""Updates that are bound to the variable of a loop, in programs of plain tensors."""

import importlib.util

import pytest

from truestep.events import ValueUnread
from truestep.testing import capture_events

PROGRAM = """
import torch


def start():
    g = torch.Generator().manual_seed(0)
    params = [torch.randn(4, 3, generator=g).requires_grad_(), torch.zeros(3, requires_grad=True)]
    return params, torch.randn(20, 4, generator=g), torch.randn(20, 3, generator=g)


def loss_of(params, x, y):
    return ((x @ params[0] + params[1] - y) ** 2).mean()


{update}


def train(steps=12):
    params, x, y = start()
    velocity = [torch.zeros_like(p) for p in params]
    squares = [torch.zeros_like(p) for p in params]
    masks = [torch.ones_like(p) for p in params]
    anchors = [p.detach().clone() for p in params]
    history = []
    for step in range(steps):
        loss = loss_of(params, x, y)
        grads = torch.autograd.grad(loss, params)
        {call}
    return params, history
"""
UPDATE = """
def update(params, grads, velocity, squares, masks, anchors, history, lr=0.1, mu=0.9):
    with torch.no_grad():
        {}
"""
CALL = "update(params, grads, velocity, squares, masks, anchors, history)"
BACKWARD = """
def update(params, velocity):
    for p in params:
        p.grad = None
    loss = loss_of(params, X, Y)
    loss.backward()
    with torch.no_grad():
        {}


PARAMS, X, Y = start()
VELOCITY = {{i: torch.zeros_like(p) for i, p in enumerate(PARAMS)}}
"""


def events_of(path, text):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    with capture_events() as events:
        spec.loader.exec_module(module)
        module.train()
    return [event for event in events if isinstance(event, ValueUnread) and event.kind == "update"]


def indented(text, by=8):
    return text.strip().replace("\n", "\n" + " " * by)


def in_function(tmp_path, body):
    return events_of(tmp_path / "program.py", PROGRAM.format(update=UPDATE.format(indented(body)), call=CALL))


def in_loop(tmp_path, body):
    text = indented("with torch.no_grad():\n    " + body.strip().replace("\n", "\n    "))
    return events_of(tmp_path / "program.py", PROGRAM.format(update="", call=text))


LOST = {
    "velocity": "for p, g, v in zip(params, grads, velocity):\n    v = 0.9 * v + g\n    p -= 0.1 * v",
    "velocity by sub_": "for p, g, v in zip(params, grads, velocity):\n    v = torch.add(g, v)\n"
    "    p.data.sub_(0.1 * v)",
    "of two": "for i, (p, g, v, s) in enumerate(zip(params, grads, velocity, squares)):\n    v.mul_(0.9).add_(g)\n"
    "    s = 0.9 * s + 0.1 * g * g\n    root = s.sqrt() + 1e-3\n    p.sub_(0.01 * v / root)",
    "parameters": "for p, g in zip(params, grads):\n    p = p - 0.1 * g",
    "parameters by a method": "for p, g in zip(params, grads):\n    p = p.sub(0.1 * g)",
    "then clamped": "for p, g in zip(params, grads):\n    p = p - 0.1 * g\n    p = p.clamp(-1, 1)",
    "a tuple": "for p, g in zip((params[0], params[1]), grads):\n    p = p - 0.1 * g",
    "clamped": "for p, g in zip(params, grads):\n    p -= 0.1 * g\nfor p in params:\n    p = p.clamp(-0.01, 0.01)",
}


@pytest.mark.parametrize("body", [body for name, body in LOST.items() if name != "a tuple"], ids=str)
def test_an_update_that_is_lost_is_found_in_a_function(tmp_path, body):
    assert len(in_function(tmp_path, body)) == 1


@pytest.mark.parametrize("body", [body for name, body in LOST.items() if name != "a tuple"], ids=str)
def test_an_update_that_is_lost_is_found_in_the_loop(tmp_path, body):
    (event,) = in_loop(tmp_path, body)
    assert event.name in ("p", "v", "s")
    assert event.site is not None
    assert event.site.line > 25


@pytest.mark.parametrize(
    "body",
    ["for p in params:\n    p = p - 0.1 * p.grad", "for p in params:\n    g = p.grad\n    p = p - 0.1 * g",
     "for p, (k, v) in zip(params, velocity.items()):\n    v = 0.9 * v + p.grad\n    p -= 0.1 * v",
     "for p, v in zip(params, velocity.values()):\n    v = 0.9 * v + p.grad\n    p -= 0.1 * v"],
)  # fmt: skip
def test_an_update_from_the_attribute_is_found(tmp_path, body):
    text = PROGRAM.format(update=BACKWARD.format(indented(body)), call="update(PARAMS, VELOCITY)")
    assert len(events_of(tmp_path / "program.py", text)) == 1


KEPT = {
    "in place": "for p, g, v in zip(params, grads, velocity):\n    v.mul_(0.9).add_(g)\n    p -= 0.1 * v",
    "augmented": "for p, g, v in zip(params, grads, velocity):\n    v *= 0.9\n    v += g\n    p -= 0.1 * v",
    "stored": "for i, (p, g, v) in enumerate(zip(params, grads, velocity)):\n    v = 0.9 * v + g\n"
    "    velocity[i] = v\n    p -= 0.1 * v",
    "copied": "for p, g, v in zip(params, grads, velocity):\n    old = v\n    v = 0.9 * v + g\n    old.copy_(v)\n"
    "    p -= v",
    "decay of the gradient": "for p, g in zip(params, grads):\n    g = g + 0.01 * p\n    p -= 0.1 * g",
    "gradient clipped": "for p, g, v in zip(params, grads, velocity):\n    g = g.clamp(-1, 1)\n    v.add_(g)\n"
    "    p -= 0.1 * v",
    "mask": "for p, g, m in zip(params, grads, masks):\n    m = m * g\n    p -= 0.1 * m",
    "anchor": "for p, g, a in zip(params, grads, anchors):\n    a = a - p\n    p -= 0.1 * (g - 0.1 * a)",
    "new parameters": "fast = []\nfor p, g in zip(params, grads):\n    p = p - 0.1 * g\n    fast.append(p)\n"
    "for p, f in zip(params, fast):\n    p.copy_(f)",
    "size of a step": "size = 0.0\nfor p, g in zip(params, grads):\n    p = p - 0.1 * g\n    size += p.norm()\n"
    "history.append(size)",
    "last one": "for p, g in zip(params, grads):\n    p = p - 0.1 * g\nhistory.append(p)",
    "in an expression": "params[:] = [(p - 0.1 * g).requires_grad_() for p, g in zip(params, grads)]",
    "within bounds": "for p, g in zip(params, grads):\n    p -= 0.1 * g\n    p.clamp_(-5, 5)\n"
    "for p in params:\n    p = p.clamp(-9, 9)",
    "state without a use": "for p, g in zip(params, grads):\n    p -= 0.1 * g\nfor s in squares:\n    s = s * 0.9",
}  # fmt: skip


@pytest.mark.parametrize("where", [in_function, in_loop])
@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_values_that_are_kept_or_made_for_one_pass_are_silent(tmp_path, body, where):
    assert where(tmp_path, body) == []
