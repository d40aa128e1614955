"""The line that cut the graph: found between two calls, and not named where more than one line could have cut."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")

from truestep.events import TapeRead
from truestep.testing import capture_events

START = """
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2)
log = []


def criterion(out, y):
    return nn.functional.cross_entropy(out, y)

"""
STEPS = """

optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for step in range(3):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    {steps}
    loss.backward()
    optimizer.step()
"""
NAMED = {
    "in the call itself": ("", "loss = criterion(head(encoder(x).detach()), y)  # cut", ".detach()"),
    "between two lines": (
        "",
        "h = encoder(x)\n    h = h.detach()  # cut\n    loss = criterion(head(h), y)",
        ".detach()",
    ),
    "through data": ("", "h = encoder(x)\n    loss = criterion(head(h.data), y)  # cut", ".data"),
    "through numpy": (
        "",
        "h = encoder(x)\n    h = torch.from_numpy(h.detach().numpy())  # cut\n    loss = criterion(head(h), y)",
        "torch.from_numpy(...)",
    ),
    "a helper that returns": (
        "def features(x):\n    h = encoder(x)\n    return h.detach()  # cut",
        "loss = criterion(head(features(x)), y)",
        ".detach()",
    ),
    "a helper that is given": (
        "def classify(h):\n    h = h.clone().detach()  # cut\n    return head(h)",
        "loss = criterion(classify(encoder(x)), y)",
        ".detach()",
    ),
    "in the forward of an inner module": (
        """
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.relu(self.layer(x))
        return torch.tensor(h.tolist())  # cut


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(4, 2)

    def forward(self, x):
        h = self.encoder(x)
        return self.head(h)


net = encoder = Net()
""",
        "loss = criterion(net(x), y)",
        "torch.tensor(...)",
    ),
    "beside a log": (
        "",
        "h = encoder(x)\n    log.append(h.mean().item())\n    size = h.norm().item()\n"
        "    out = {'h': h.detach()}  # cut\n    loss = criterion(head(out['h']), y)",
        ".detach()",
    ),
    "of another value": (
        "",
        "h = encoder(x)\n    other = y.detach()\n    z = h.detach()  # cut\n    loss = criterion(head(z), other)",
        ".detach()",
    ),
    "after the model": (
        "",
        "loss = criterion(head(encoder(x)), y)\n    loss = torch.tensor(loss.item(), requires_grad=True)  # cut",
        "torch.tensor(...)",
    ),
    "over two lines": (
        "",
        "loss = criterion(\n        head(\n            encoder(x)  # cut\n            .detach()\n        ), y)",
        ".detach()",
    ),
}
UNNAMED = {
    "two that could have cut": "h = encoder(x).detach()\n    h = h.data\n    loss = criterion(head(h), y)",
    "an operation without a gradient": "h = (encoder(x) > 0) * 1.0\n    loss = criterion(head(h), y)",
    "a value that is only logged": "h = encoder(x)\n    log.append(h.detach())\n    loss = criterion(head(h), y)",
    "nothing": "loss = criterion(head(encoder(x)), y)",
}


def reads(folder: Path, before: str, steps: str) -> tuple[str, list[TapeRead]]:
    source = START + textwrap.dedent(before) + STEPS.format(steps=steps)
    path = folder / "train.py"
    path.write_text(source, encoding="utf-8")
    with capture_events() as events:
        exec(compile(source, str(path), "exec"), {"__name__": "__main__"})
    return source, [event for event in events if isinstance(event, TapeRead)]


@pytest.mark.parametrize("style", NAMED)
def test_the_line_that_cuts_is_named(style: str, tmp_path: Path) -> None:
    before, steps, words = NAMED[style]
    source, events = reads(tmp_path, before, steps)
    (line,) = (number for number, text in enumerate(source.splitlines(), 1) if "# cut" in text)
    assert {(event.cut and event.cut.line, event.cut_by) for event in events} == {(line, words)}


@pytest.mark.parametrize("style", UNNAMED)
def test_no_line_is_named_where_none_is_certain(style: str, tmp_path: Path) -> None:
    _, events = reads(tmp_path, "", UNNAMED[style])
    assert events
    assert {(event.cut, event.cut_by) for event in events} == {(None, "")}


def test_a_source_that_cannot_be_read_names_no_line() -> None:
    source = START + STEPS.format(steps="loss = criterion(head(encoder(x).detach()), y)")
    with capture_events() as events:
        exec(compile(source, "<no file>", "exec"), {"__name__": "__main__"})
    assert {event.cut for event in events if isinstance(event, TapeRead)} == {None}
