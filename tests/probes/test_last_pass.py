"""A metric that each pass of an evaluation overwrites is read from the loop, and confirmed by its value."""

import textwrap

import pytest
import torch
from torch import nn

from truestep.events import LoopRead
from truestep.testing import capture_events

START = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Meter:
        def __init__(self):
            self.total = self.count = 0
        def __call__(self, value):
            self.total, self.count = self.total + value, self.count + 1
            return self.total / self.count
        def share(self, result, labels):
            return (result.argmax(1) == labels).float().mean()

    class Kept(nn.Module):
        def forward(self, result, labels):
            self.kept = F.cross_entropy(result, labels)
            return self.kept

    class Own(nn.Module):
        def forward(self, result, labels):
            return F.cross_entropy(result, labels)

    class Trainer:
        def __init__(self):
            self.loss = nn.CrossEntropyLoss()

    loss, own, kept, meter, history, trainer = nn.CrossEntropyLoss(), Own(), Kept(), Meter(), [], Trainer()
"""
LOOP = """
    def evaluate(model, loader):
        {start}
        for {parts} in loader:
            with torch.no_grad():
                {body}
        {end}
"""


def reads(tmp_path, body, end="return v", parts="x, y", start="pass"):
    path = tmp_path / "train.py"
    loop = LOOP.format(start=start, parts=parts, body=body.replace("\n", "\n" + " " * 16), end=end)
    path.write_text(textwrap.dedent(START) + textwrap.dedent(loop))
    program = {"__name__": "train"}
    exec(compile(path.read_text(), str(path), "exec"), program)
    batches = [(torch.randn(8, 4), torch.arange(8) % 3) for _ in range(4)]
    batches = [{"x": x, "y": y} for x, y in batches] if "{" in parts else batches
    with capture_events() as events:
        program["evaluate"](nn.Linear(4, 3), batches)
    return [event.name for event in events if isinstance(event, LoopRead) and event.use == "read"]


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("v = loss(model(x), y)", {}),
        ("out = model(x)\nv = (out.argmax(1) == y).float().mean().item()", {}),
        ("out = model(x)\nguess = out.argmax(1)\nv = int((guess == y).sum())", {"end": "print(v)"}),
        ("v = own(model(x), y)", {}),
        ("v = trainer.loss(model(x), y)", {}),
        ("v = meter.share(model(x), y)", {}),
        ("x, y = batch\nout = model(x)\nv = F.cross_entropy(out, y)", {"parts": "batch"}),
        ("out = model(batch[0])\nv = F.cross_entropy(out, batch[1])", {"parts": "batch"}),
        ("v = loss(model(x), y)", {"parts": "i, (x, y)", "start": "loader = list(enumerate(loader))"}),
    ],
)
def test_a_number_that_compares_a_result_with_the_rest_of_the_batch_is_read(tmp_path, body, more):
    assert reads(tmp_path, body, **more) == ["v"]


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("v = loss(model(x), y)\nhistory.append(v)", {}),
        ("v = loss(model(x), y)\nnothing = history.append(v)", {}),
        ("v = meter(loss(model(x), y))", {}),
        ("v = kept(model(x), y)", {}),
        ("v = loss(model(x), y)\nn += 1", {"start": "n = 0"}),
        ("v = loss(model(x), y)\nif v > 9: break", {}),
        ("v = loss(model(x), y)\nw = v", {}),
        ("v = loss(model(x), y)", {"end": "v = 3"}),
        ("v = loss(model(x), y)", {"end": "return"}),
        ("v = (model(x) > 0).float() + y[:, None]", {}),
        ("v = model(x)[-1, 0].item()", {}),
        ("out = model(x)\nv = y.float().mean()", {}),
        ("v = loss(model(x), z)\nz = y + 0", {"start": "z = torch.zeros(8).long()"}),
        ("v = loss(model(x) * rate, y)", {"parts": "rate", "start": "(x, y), *_ = loader; loader = 0.1, 0.2, 0.3"}),
        ("v = (model(x)[i] + 0).sum()", {"parts": "i, (x, y)", "start": "loader = list(enumerate(loader))"}),
    ],
    ids=[
        "kept in a list", "kept by a call", "running mean", "kept by a module", "counted", "ends early",
        "read in the loop", "overwritten behind", "not read", "an image", "a prediction",
        "without the result", "recurrent", "trials of a rate", "a row",
    ],
)  # fmt: skip
def test_other_variables_are_quiet(tmp_path, body, more):
    assert reads(tmp_path, body, **more) == []


@pytest.mark.parametrize(
    ("body", "end", "name"),
    [
        ("v, w = model(x).squeeze(-1), y", "return (v.argmax(1) == w).sum()", "v"),
        ("v = model(x)\nw = y", "return F.cross_entropy(v, w)", "v"),
        ("out = model(x)\nv = out.argmax(1)", "return (v - y).abs().float().mean()", "v"),
    ],
)
def test_a_result_that_is_compared_behind_the_loop_is_read(tmp_path, body, end, name):
    assert reads(tmp_path, body, end) == [name]


@pytest.mark.parametrize(
    ("body", "end"),
    [
        ("v, w = model(x), y", "print(v, w)"),
        ("v, w = model(x), y", "return v[0], w[0]"),
        ("v, w = model(x), y", "return list(zip(v.tolist(), w.tolist()))"),
        ("v, w = model(x), y", "v = v * 0\n        return F.cross_entropy(v, w)"),
        ("v, w = model(x), y\nhistory.append(v)", "return F.cross_entropy(v, w)"),
        ("v, w = model(x), y", "return (v == v).sum()"),
    ],
    ids=["shown", "a sample", "pairs to show", "another value", "kept", "without targets"],
)
def test_results_of_the_last_pass_for_another_use_are_quiet(tmp_path, body, end):
    assert reads(tmp_path, body, end) == []


def test_calls_with_gradients_are_quiet(tmp_path):
    training = "with torch.enable_grad():\n    v = loss(model(x), y)"
    assert reads(tmp_path, training) == []


SLICES = """
    @torch.no_grad()
    def evaluate(model, x, y, size=8):
        for {loop}:
            {body}
        {end}
"""


def reads_of_slices(tmp_path, loop, body, end="return v"):
    path = tmp_path / "train.py"
    source = SLICES.format(loop=loop, body=body.replace("\n", "\n" + " " * 12), end=end)
    path.write_text(textwrap.dedent(START) + textwrap.dedent(source))
    program = {"__name__": "train"}
    exec(compile(path.read_text(), str(path), "exec"), program)
    with capture_events() as events:
        program["evaluate"](nn.Linear(4, 3), torch.randn(40, 4), torch.arange(40) % 3)
    return [event.name for event in events if isinstance(event, LoopRead) and event.use == "read"]


@pytest.mark.parametrize(
    ("loop", "body"),
    [
        ("i in range(0, len(x), size)", "v = loss(model(x[i:i + size]), y[i:i + size])"),
        ("i in range(0, len(x), size)", "a, b = x[i:min(i + size, 40)], y[i:size + i]\nv = loss(model(a), b)"),
        ("i in range(5)", "v = loss(model(x[i * size:(i + 1) * size]), y[i * size:i * size + size])"),
        ("i in torch.arange(40).split(size)", "out = model(x[i])\nv = F.cross_entropy(out, y[i])"),
        ("k, i in enumerate(torch.randperm(40).chunk(5))", "v = loss(model(x[i]), y[i])"),
        ("a, b in zip(x.split(size), y.split(size))", "v = loss(model(a), b)"),
    ],
)
def test_batches_of_rows_that_follow_each_other_are_known(tmp_path, loop, body):
    assert reads_of_slices(tmp_path, loop, body) == ["v"]


@pytest.mark.parametrize(
    ("loop", "body", "end"),
    [
        ("i in range(0, 40, size)", "v = loss(model(x[:i + 1]), y[:i + 1])", "return v"),
        ("i in range(30)", "v = loss(model(x[i:i + size]), y[i:i + size])", "return v"),
        ("i in range(4)", "v = (model(x)[:, 0] - x[:, i]).abs().mean()", "return v"),
        ("i in range(0, 40, size)", "v = loss(model(x[i:i + size]), y[i:i + size])", "print(f'last one: {v}')"),
        ("i in range(0, 40, size)", "last = loss(model(x[i:i + size]), y[i:i + size])", "return last"),
        ("i in range(0, 40, size)", "a = x.clone().mul_(2)\nv = loss(model(a[i:i + size]), y[i:i + size])", "return v"),
    ],
    ids=["growing", "windows", "columns", "said", "named", "in place"],
)
def test_other_slices_are_quiet(tmp_path, loop, body, end):
    assert reads_of_slices(tmp_path, loop, body, end) == []


@pytest.mark.parametrize("kept", ["history.append(v)", "total.add_(v)", "print(v)", "deeper(v)"])
def test_a_function_that_keeps_a_value_is_quiet(tmp_path, kept):
    path = tmp_path / "train.py"
    more = f"""
    total = torch.zeros(())
    def deeper(v):
        history.append(v)
    def keep(v):
        {kept}
        return v
    """
    loop = LOOP.format(start="pass", parts="x, y", body="v = keep(loss(model(x), y))", end="return v")
    path.write_text("".join(map(textwrap.dedent, (START, more, loop))))
    program = {"__name__": "train"}
    exec(compile(path.read_text(), str(path), "exec"), program)
    with capture_events() as events:
        program["evaluate"](nn.Linear(4, 3), [(torch.randn(8, 4), torch.arange(8) % 3) for _ in range(4)])
    assert not any(isinstance(event, LoopRead) and event.use == "read" for event in events)
