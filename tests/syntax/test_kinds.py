"""Kinds of objects, from constructions, annotations, names, parameters and tuples."""

import pytest

from truestep.syntax import Kind, Program

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"


def kind(text, name="x"):
    """Return the kind of the first argument of the call of `look`, and whether it is sure."""
    program = Program.from_text(HEAD + text)
    (call,) = program.method("look")
    guess = program.kinds.of(call.node.args[0], call.context, call.order)
    return None if guess is None else (guess.kind, guess.sure)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = nn.Linear(1, 1)\nlook(x)", Kind.MODEL),
        ("x = torch.compile(nn.Linear(1, 1).to('cpu'))\nlook(x)", Kind.MODEL),
        ("class Net(nn.Module): ...\nx = Net()\nlook(x)", Kind.MODEL),
        ("class Base(nn.Module): ...\nclass Net(Base): ...\nlook(Net())", Kind.MODEL),
        ("x = torch.optim.Adam(p)\nlook(x)", Kind.OPTIMIZER),
        ("x, y = torch.optim.Adam(p), nn.Linear(1, 1)\nlook(x)", Kind.OPTIMIZER),
        ("x = torch.optim.lr_scheduler.StepLR(o, 1)\nlook(x)", Kind.SCHEDULER),
        ("x = nn.MSELoss()\nlook(x)", Kind.LOSS),
        ("x = DataLoader(d)\nlook(x)", Kind.LOADER),
        ("x = torch.amp.GradScaler('cpu')\nlook(x)", Kind.SCALER),
        ("x, y = torch.utils.data.random_split(d, [1, 1])\nlook(x)", Kind.DATASET),
        ("def f(x: nn.Module):\n    look(x)", Kind.MODEL),
        ("def f(x: torch.optim.Optimizer | None):\n    look(x)", Kind.OPTIMIZER),
        ("def f(x):\n    look(x)\nf(nn.Linear(1, 1))", Kind.MODEL),
        ("def f(a, x=None):\n    look(x)\nf(1, x=torch.optim.SGD(p))", Kind.OPTIMIZER),
        ("def make():\n    return nn.Linear(1, 1)\nlook(make())", Kind.MODEL),
        ("def make():\n    return nn.Linear(1, 1), torch.optim.SGD(p)\na, x = make()\nlook(x)", Kind.OPTIMIZER),
        ("class T:\n    def __init__(self):\n        self.o = torch.optim.SGD(p)\n"
         "    def f(self):\n        look(self.o)",
         Kind.OPTIMIZER),
        ("x = nn.Linear(1, 1)\ny = torch.optim.SGD(p)\nx, y = accelerator.prepare(x, y)\nlook(y)", Kind.OPTIMIZER),
        ("for x in (torch.optim.SGD(p), torch.optim.SGD(q)):\n    look(x)", Kind.OPTIMIZER),
    ],
)  # fmt: skip
def test_construction_is_sure(text, expected):
    assert kind(text) == (expected, True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("optimizer", Kind.OPTIMIZER), ("opt_g", Kind.OPTIMIZER), ("optimizerD", Kind.OPTIMIZER),
        ("lr_scheduler", Kind.SCHEDULER), ("val_loader", Kind.LOADER), ("criterion", Kind.LOSS),
        ("model", Kind.MODEL), ("netG", Kind.MODEL), ("grad_scaler", Kind.SCALER),
    ],
)  # fmt: skip
def test_name_is_a_guess(name, expected):
    assert kind(f"def f({name}):\n    look({name})") == (expected, False)


@pytest.mark.parametrize("name", ["x", "inputs", "options", "network_size", "total"])
def test_other_names_are_unknown(name):
    assert kind(f"def f({name}):\n    look({name})") is None


def test_two_kinds_are_none():
    assert kind("x = nn.Linear(1, 1)\nif y:\n    x = torch.optim.SGD(p)\nlook(x)") is None
