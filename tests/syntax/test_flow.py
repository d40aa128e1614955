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


MODES = """
def set_mode(net, training=True):
    net.train(training)

for x, y in loader:
    set_mode({given})
    model(x)
"""


@pytest.mark.parametrize(
    ("given", "act"),
    [("model, False", "EVAL"), ("model", "TRAIN"), ("net=model, training=True", "TRAIN"), ("model, flag", "MODE")],
)
def test_a_mode_is_known_where_its_argument_is_a_constant(given, act):
    program = Program.from_text(HEAD + MODES.format(given=given))
    (loop,) = program.loops
    assert [(one.act.name, one.key) for one in program.flow.of_loop(loop)] == [(act, "model"), ("FORWARD", "model")]


DECORATED = """
def without(function):
    {above}
    def wrapped(*args):
        {before}
        {call}
    return wrapped

{decorators}
def evaluate(net, batches):
    for x, y in batches:
        net(x)

evaluate(model, loader)
"""
QUIET = [
    DECORATED.format(
        above="", before="pass", call="with torch.no_grad():\n            return function(*args)", decorators="@without"
    ),
    DECORATED.format(above="@torch.no_grad()", before="pass", call="return function(*args)", decorators="@without"),
    DECORATED.format(above="@torch.no_grad", before="pass", call="return function(*args)", decorators="@without"),
]  # fmt: skip


@pytest.mark.parametrize("text", QUIET, ids=["block", "decorator", "name"])
def test_gradients_are_off_by_a_decorator_of_the_file(text):
    program = Program.from_text(HEAD + text)
    for scope in (program.module, next(one for one in program.functions() if one.name == "evaluate")):
        (forward,) = program.flow.operations(scope)
        assert forward.act.name == "FORWARD"
        assert forward.without_gradients


def test_a_decorator_that_only_calls_leaves_gradients_on():
    text = DECORATED.format(above="", before="print(args)", call="return function(*args)", decorators="@without")
    program = Program.from_text(HEAD + text)
    (forward,) = program.flow.operations(program.module)
    assert not forward.without_gradients


def test_a_decorator_is_told_a_mode():
    text = """
def in_mode(training):
    def decorate(function):
        def wrapped(self, *args):
            self.model.train(training)
            try:
                return function(self, *args)
            finally:
                self.model.train(not training)
        return wrapped
    return decorate

class Trainer:
    @in_mode(False)
    def validate(self, loader):
        for x in loader:
            self.model(x)
"""
    program = Program.from_text(HEAD + text)
    (validate,) = [one for one in program.functions() if one.name == "Trainer.validate"]
    operations = program.flow.operations(validate)
    assert [(one.act.name, one.key) for one in operations] == [
        ("EVAL", "self.model"), ("FORWARD", "self.model"), ("MODE", "self.model")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "act"),
    [
        ("p.grad = None", "CLEAR"),
        ("p.grad = g", "CLEAR"),
        ("del p.grad", "CLEAR"),
        ("p.grad = p.grad * 0.5", "CLEAR"),
        ("p.grad = g if p.grad is None else p.grad + g", "ADD"),
        ("p.grad += g", "ADD"),
        ("p.grad.add_(g)", "ADD"),
        ("p.grad.zero_()", "CLEAR"),
    ],
)
def test_gradients_by_hand(line, act):
    program = Program.from_text(f"{HEAD}for p, g in zip(model.parameters(), gradients):\n    {line}\n")
    (one,) = program.flow.operations(program.module)
    assert one.act.name == act


def test_elements_of_a_container_have_their_own_text():
    text = """
optimizers = {name: torch.optim.SGD(net.parameters()) for name, net in nets.items()}

def apply(name, loss):
    optimizers[name].zero_grad()
    loss.backward()
    optimizers[name].step()

for x in loader:
    apply("actor", x)
    apply("critic", x)
"""
    program = Program.from_text(HEAD + text)
    (training,) = program.roles.trainings()
    steps = training.all_steps
    assert [one.optimizer for one in steps] == ["optimizers['actor']", "optimizers['critic']"]
    assert all(one.sure and one.built is not None and one.built.name == "torch.optim.SGD" for one in steps)
