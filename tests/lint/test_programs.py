"""Whole programs in many styles: quiet as they are written, and found with one mistake each.

A line ends with the mistake in its place: `# broken[RULE]: CODE`.
"""

import re
from pathlib import Path

import pytest

from truestep.lint import lint

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
MARK = re.compile(r"^(?P<indent> *)(?P<code>.*?)  # broken\[(?P<rule>[a-z-]+)\]:(?: (?P<new>.*))?$", re.MULTILINE)
BROKEN = [name for name, text in PROGRAMS.items() if MARK.search(text)]


def test_there_are_programs_with_and_without_a_mistake():
    assert len(PROGRAMS) >= 24
    assert len(BROKEN) >= 23


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_healthy_program_is_quiet(name):
    assert lint(MARK.sub(r"\g<indent>\g<code>", PROGRAMS[name]), f"{name}.py") == ()


@pytest.mark.parametrize("name", BROKEN)
def test_one_mistake_is_found_and_nothing_else(name):
    text = PROGRAMS[name]
    (rule,) = {found["rule"] for found in MARK.finditer(text)}
    assert {one.rule for one in lint(MARK.sub(r"\g<indent>\g<new>", text), f"{name}.py")} == {rule}


TRAIN = """
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
MADE = "    model = nn.Linear(4, 3)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
CLOSURE = """
def main(x, y):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.LBFGS(model.parameters())
    def closure():
        {clear}
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss
    for _ in range(9):
        optimizer.step(closure)
"""
QUIET = {
    "a new model after the training, for a test": (
        f"def main(loader):\n{MADE}{TRAIN}"
        "    model = nn.Linear(4, 3)\n    model.load_state_dict(torch.load('best.pt'))\n"
    ),
    "a new model with a new optimizer": f"def main(loader):\n{MADE}\n{MADE}{TRAIN}",
    "a wrapper of the model after the optimizer": (
        f"def main(loader):\n{MADE}\n    model = nn.Sequential(model, nn.Flatten()){TRAIN}"
    ),
    "an optimizer of a model without a name, for a picture of a schedule": (
        "optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)\n"
        "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)\n"
        "for _ in range(9):\n    optimizer.step()\n    schedule.step()\n"
    ),
    "a state that was taken before a training of another model": (
        f"def main(loader, other):\n{MADE}\n    state = other.state_dict(){TRAIN}    other.load_state_dict(state)\n"
    ),
    "a state that was saved before the training": (
        f"def main(loader):\n{MADE}\n    state = model.state_dict()\n    torch.save(state, 'first.pt'){TRAIN}"
        "    model.load_state_dict(state)\n"
    ),
    "an optimizer that is returned": (
        f"def main(model, x):\n{MADE}\n    model(x).sum().backward()\n    return optimizer\n"
    ),
    "an optimizer for a function of another function": (
        f"def main(loader):\n{MADE}\n    def step(x, y):\n        nn.functional.cross_entropy(model(x), y).backward()\n"
        "        optimizer.step()\n        optimizer.zero_grad()\n    return step\n"
    ),
    "a divergence of a logarithm of a softmax": (
        "def loss(model, x, y):\n    return nn.functional.kl_div(model(x).softmax(1).log(), y, reduction='batchmean')\n"
    ),
    "a closure that clears the model": CLOSURE.format(clear="model.zero_grad()"),
    "a closure that clears by hand": CLOSURE.format(clear="for p in model.parameters(): p.grad = None"),
    "weights that are kept for the smaller loss of one phase": (
        f"def main(loader, phase, val_loss, best_loss):\n{MADE}{TRAIN}"
        "        if phase == 'val' and val_loss < best_loss:\n            best_loss = val_loss\n"
        "            torch.save(model.state_dict(), 'best.pt')\n"
    ),
}


def total(before):
    return (
        f"def main(loader):\n{MADE}\n    total = 0.0\n    for x, y in loader:\n        optimizer.zero_grad()\n"
        "        loss = nn.functional.cross_entropy(model(x), y)\n        loss.backward()\n        optimizer.step()\n"
        f"        {before}\n        total += loss\n    print(total)\n"
    )


EVALUATE = """
{decorator}
def evaluate(model, val_loader):
    model.eval()
    hits = 0
    for x, y in val_loader:
        hits += (model(x).argmax(1) == y).sum().item()
{end}    return hits
"""
SAVED = """
import torch.distributed as dist
def main(rank, model, alone):
    dist.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(model)
    {saves}
torch.multiprocessing.spawn(main, nprocs=2)
"""
QUIET |= {
    "a total of losses that are numbers by then": total("loss = loss.item()"),
    "an evaluation that is called with gradients off": EVALUATE.format(decorator="", end="")
    + "def main(model, loader):\n    with torch.no_grad():\n        return evaluate(model, loader)\n",
    "an evaluation that is called through another function with gradients off": EVALUATE.format(decorator="", end="")
    + "def run(model, loader):\n    return evaluate(model, loader)\n"
    "@torch.no_grad()\ndef main(model, loader):\n    return run(model, loader)\n",
    "an evaluation of one batch": EVALUATE.format(decorator="", end="        break\n"),
    "an evaluation in a function without gradients that calls another one": (
        "def predict(model, x):\n    return model(x).argmax(1)\n"
        "@torch.no_grad()\ndef evaluate(model, val_loader):\n    model.eval()\n"
        "    return [predict(model, x) for x, _ in val_loader] or [predict(model, x) for x, _ in val_loader]\n"
        "@torch.inference_mode\ndef test(model, val_loader):\n    model.eval()\n"
        "    for x, _ in val_loader:\n        print(predict(model, x))\n"
    ),
    "a save of one rank, or of the only process": SAVED.format(
        saves="if not alone:\n        if rank == 0:\n            torch.save(model.state_dict(), 'a.pt')\n"
        "    else:\n        torch.save(model.state_dict(), 'a.pt')"
    ),
}


OWN = """
class {name}:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.copy = copy.deepcopy(model)

    @torch.no_grad()
    def update(self, model):
        for mine, other in zip(self.copy.parameters(), model.parameters()):
            mine.lerp_(other, 1 - self.decay)

    def step(self, model):
        self.update(model)


def main(loader, hook):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ema = {name}(model)
{use}
    with torch.no_grad():
        print(ema.copy(next(iter(loader))[0]))
"""
EVALUATED = """
def without_gradients(function):
    def wrapped(*args):
        {block}
            return function(*args)
    return wrapped

@without_gradients
def evaluate(model, val_loader):
    model.eval()
    hits = 0
    for x, y in val_loader:
        hits += (model(x).argmax(1) == y).sum().item()
    return hits
"""
DICT = """
class Agent:
    def __init__(self, nets):
        self.nets = nets
        self.optimizers = {{name: torch.optim.Adam(net.parameters()) for name, net in nets.items()}}

    def learn(self, losses):
        {clear}
        for name, loss in losses.items():
            loss.backward()
            self.optimizers[name].step()
"""
BY_HAND = """
def main(loader):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        gradients = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), list(model.parameters()))
        {clear}
        for param, gradient in zip(model.parameters(), gradients):
            {add}
        optimizer.step()
"""
ADD = "param.grad = gradient if param.grad is None else param.grad + gradient"
QUIET |= {
    "an average that a method of it updates": "import copy\n"
    + OWN.format(name="Ema", use=f"{TRAIN}        ema.step(model)"),
    "a step in one pass of a loop behind the backward pass": (
        f"def main(loader, late):\n{MADE}\n    for x, y in loader:\n        optimizer.zero_grad()\n"
        "        nn.functional.cross_entropy(model(x), y).backward()\n        for number in range(3):\n"
        "            if number == late:\n                optimizer.step()\n"
    ),
    "an average that a hook updates": "import copy\n"
    + OWN.format(name="Ema", use="    hook(lambda *_: ema.update(model))" + TRAIN),
    "an average that is passed on": "import copy\n" + OWN.format(name="Ema", use="    hook(ema)" + TRAIN),
    "a copy that is kept": "import copy\n"
    + OWN.replace("lerp_(other, 1 - self.decay)", "sub(other)").format(name="Before", use=TRAIN),
    "gradients that a decorator switches off": EVALUATED.format(block="with torch.no_grad():"),
    "optimizers of a dict that are cleared in a loop": DICT.format(
        clear="for one in self.optimizers.values(): one.zero_grad()"
    ),
    "gradients that are set by hand": BY_HAND.format(clear="pass", add="param.grad = gradient"),
    "gradients that are cleared by hand": BY_HAND.format(
        clear="for param in model.parameters(): param.grad = None", add=ADD
    ),
    "gradients that are deleted": BY_HAND.format(clear="for param in model.parameters(): del param.grad", add=ADD),
    "values of a loop over weights that are read": (
        "def distance(one, other):\n    total = 0.0\n    for p, q in zip(one.parameters(), other.parameters()):\n"
        "        q = q.detach()\n        total += (p - q).norm()\n    return total\n"
    ),
    "operations on tensors that write": (
        "def main(one, other, into):\n    for p, q in zip(one.parameters(), other.parameters()):\n"
        "        p.data.mul_(0.9).add_(q, alpha=0.1)\n        torch.add(p, q, out=into).mul_(2)\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUIET)
def test_code_that_looks_like_a_mistake_is_quiet(name):
    assert lint(f"import torch\nfrom torch import nn\n\n{QUIET[name]}") == ()


def test_torch_may_come_from_an_import_of_all_names():
    text = "from .utils import *\nfrom torch import nn\n" + EVALUATE.format(decorator="{}", end="")
    assert lint(text.replace("{}", "@torch.no_grad()")) == ()
    assert [one.rule for one in lint(text.replace("{}", ""))] == ["no-grad-missing"]


UNUSED = f"def main(loader):\n{MADE}{TRAIN}".replace("optimizer.step()", "pass").replace(
    "optimizer.zero_grad()", "model.zero_grad()"
)
FOUND = {
    "loss-kept-with-graph": total("pass"),
    "no-grad-missing": EVALUATE.format(decorator="", end=""),
    "saved-by-every-rank": SAVED.format(saves="torch.save(model.state_dict(), 'a.pt')"),
    "optimizer-holds-stale-parameters": f"def main(loader):\n{MADE}\n    model = nn.Linear(4, 3){TRAIN}",
    "missing-zero-grad": CLOSURE.format(clear="pass"),
    "best-weights-aliased": (
        f"def main(loader):\n{MADE}\n    state = model.state_dict(){TRAIN}    model.load_state_dict(state)\n"
    ),
    "backward-without-step": UNUSED,
    "logits-into-probability-loss": (
        "def loss(model, x, y):\n    return nn.functional.kl_div(model(x).softmax(1), y, reduction='batchmean')\n"
    ),
}
FORCED = """
def {name}(loader, first):
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        {loss}
        loss.requires_grad = True
        loss.backward()
        optimizer.step()
"""
BESIDE = [
    (
        "graph-cut",
        FORCED.format(
            name="either",
            loss="loss = cost(model(x), y) if first else other(model(x), y)\n        if first:"
            "\n            loss = cost(model(x), y)",
        )
        + FORCED.format(name="main", loss="loss = cost(model(x), y)"),
    ),
    (
        "no-grad-missing",
        "import time\ndef wait(path):\n    while not path.exists():\n        time.sleep(1)\n"
        + EVALUATE.format(decorator="", end=""),
    ),
    (
        "backward-without-step",
        f"other = torch.optim.SGD(nn.Linear(4, 3).parameters(), lr=0.1)\nprint(other)\n{UNUSED}",
    ),
    ("average-never-updated", "import copy\n" + OWN.format(name="Ema", use=TRAIN)),
    (
        "average-never-updated",
        "def move(slow, fast):\n    for p, q in zip(slow.parameters(), fast.parameters()):\n"
        "        p = p * 0.9 + q * 0.1\n",
    ),
    (
        "result-never-read",
        "def move(slow, fast):\n    for p, q in zip(slow.parameters(), fast.parameters()):\n"
        "        p.data.mul(0.9).add_(q, alpha=0.1)\n",
    ),
    ("result-never-read", "def move(p, q):\n    p.data.lerp(q, 0.1)\n"),
    ("no-grad-missing", EVALUATED.format(block="if args:")),
    ("missing-zero-grad", DICT.format(clear="pass")),
    ("missing-zero-grad", BY_HAND.format(clear="pass", add=ADD)),
    ("missing-zero-grad", BY_HAND.format(clear="pass", add="param.grad += gradient")),
]


@pytest.mark.parametrize("rule", FOUND)
def test_the_mistake_beside_it_is_found(rule):
    assert [one.rule for one in lint(f"import torch\nfrom torch import nn\n\n{FOUND[rule]}")] == [rule]


@pytest.mark.parametrize(("rule", "code"), BESIDE)
def test_the_mistake_beside_code_by_hand_is_found(rule, code):
    assert [one.rule for one in lint(f"import torch\nfrom torch import nn\n\n{code}")] == [rule]
