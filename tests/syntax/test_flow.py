"""Order of operations in loops, with those of functions and methods of the same file."""

import pytest

from truestep.syntax import Program

HEAD = "import torch\nfrom torch import nn\nmodel = nn.Linear(1, 1)\nopt = torch.optim.SGD(model.parameters())\n"
FLAT = """
for x, y in loader:
    opt.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    scheduler.step()
"""
FUNCTION = """
def update(net, o, x, y):
    o.zero_grad()
    criterion(net(x), y).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    o.step()

for x, y in loader:
    update(model, opt, x, y)
    scheduler.step()
"""
METHODS = """
class Trainer:
    def __init__(self):
        self.model, self.opt = model, opt
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.opt, 1)

    def loss(self, x, y):
        return criterion(self.model(x), y)

    def fit(self):
        for x, y in loader:
            self.opt.zero_grad()
            loss = self.loss(x, y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            self.scheduler.step()
"""
CLOSURE = """
def train():
    def clear():
        opt.zero_grad()

    def take(x, y):
        clear()
        criterion(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()

    for x, y in loader:
        take(x, y)
        scheduler.step()
"""


@pytest.mark.parametrize("text", [FLAT, FUNCTION, METHODS, CLOSURE], ids=["flat", "function", "methods", "closure"])
def test_order_is_the_same_in_every_style(text):
    (training,) = Program.from_text(HEAD + text).roles.trainings()
    assert [one.act.name for one in training.operations] == ["CLEAR", "FORWARD", "BACKWARD", "CLIP", "STEP", "SCHEDULE"]


def test_names_of_parameters_become_those_of_the_caller():
    (training,) = Program.from_text(HEAD + FUNCTION).roles.trainings()
    assert [one.key for one in training.operations if one.act.name in ("CLEAR", "FORWARD", "STEP")] == [
        "opt",
        "model",
        "opt",
    ]


def test_paths_leave_out_the_other_branch():
    program = Program.from_text(
        HEAD + "for i, (x, y) in enumerate(loader):\n    model(x).sum().backward()\n"
        "    if (i + 1) % 4 == 0:\n        opt.step()\n    else:\n        opt.zero_grad()\n"
    )
    (training,) = program.roles.trainings()
    paths = {tuple(one.act.name for one in path) for path in training.paths()}
    assert paths == {("FORWARD", "BACKWARD", "STEP"), ("FORWARD", "BACKWARD", "CLEAR")}


def test_code_behind_continue_is_in_the_other_branch():
    program = Program.from_text(
        HEAD
        + "for x in loader:\n    loss = model(x).sum()\n    if loss.isnan():\n        continue\n"
        + "    loss.backward()\n    opt.step()\n"
    )
    (training,) = program.roles.trainings()
    assert training.steps[0].guarded


def test_code_elsewhere_that_gets_the_optimizer_is_unknown():
    program = Program.from_text(
        HEAD + "from other import helper\nfor x in loader:\n    helper(opt, x)\n    opt.step()\n"
    )
    (training,) = program.roles.trainings()
    assert [one.act.name for one in training.operations] == ["UNKNOWN", "STEP"]


def test_functions_that_call_each_other_end():
    text = "def f(n):\n    g(n)\ndef g(n):\n    f(n)\n    opt.step()\nfor x in loader:\n    f(x)\n"
    assert Program.from_text(HEAD + text).roles.trainings()


def test_evaluation_loops_take_no_step():
    text = "for x, y in val_loader:\n    model(x)\n"
    text += "for x, y in train_loader:\n    model(x).sum().backward()\n    opt.step()\n"
    program = Program.from_text(HEAD + text)
    (loop,) = program.roles.evaluations()
    assert loop.node.lineno == 5
    assert program.roles.over_batches(loop)
