"""State dicts that are taken: into which variable, and whether any code reads it."""

import linecache
from pathlib import Path

import pytest
import torch
from torch import nn

from truestep.events import StateTaken
from truestep.testing import capture_events

START = """
import copy
from torch import nn
model = nn.Linear(2, 1)
"""
FUNCTION = """
def fit():
    best = None
    for epoch in range(2):
        best = copy.deepcopy(model.state_dict())
    if best is not None:
        {}
fit()
"""


def taken(tmp_path: Path, text: str, name: str = "__main__") -> list[StateTaken]:
    path = tmp_path / "train.py"
    path.write_text(START + text, encoding="utf-8")
    linecache.checkcache(str(path))
    with capture_events() as events:
        exec(compile(START + text, str(path), "exec"), {"__name__": name})
    return [event for event in events if isinstance(event, StateTaken)]


def test_a_copy_that_nothing_loads(tmp_path: Path) -> None:
    assert [event.kept for event in taken(tmp_path, FUNCTION.format("pass"))] == ["best", "best"]


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION.format("model.load_state_dict(best)"),
        FUNCTION.format("return best"),
        FUNCTION.format("print(locals())"),
        "best = copy.deepcopy(model.state_dict())\ndef restore():\n    model.load_state_dict(best)\n",
        "history = []\nhistory.append(copy.deepcopy(model.state_dict()))\nprint(len(history))\n",
        "kept = []\nkept.append(model.state_dict())\nfor state in kept:\n    model.load_state_dict(state)\n",
        "size = len(model.state_dict())\n",
    ],
    ids=["loaded", "returned", "reflection", "read by a function", "counted", "each loaded", "not the state"],
)
def test_copies_that_may_be_read(tmp_path: Path, text: str) -> None:
    assert {event.kept for event in taken(tmp_path, text)} == {""}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("best = {k: v.clone() for k, v in model.state_dict().items()}\n", "best"),
        ("kept = []\nkept.append(model.state_dict())\nfor state in kept:\n    model.eval()\n", "kept"),
        ("loss, best = 0.1, copy.deepcopy(model.state_dict())\nprint(loss)\n", "best"),
        (
            "class Trainer:\n    def keep(self):\n        self.best = model.state_dict()\nTrainer().keep()\n",
            "self.best",
        ),
    ],
)
def test_variables_of_a_script(tmp_path: Path, text: str, kept: str) -> None:
    assert [event.kept for event in taken(tmp_path, text)] == [kept]
    assert [event.kept for event in taken(tmp_path, text, name="imported")] == [""]


def test_results_that_are_dropped() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    with capture_events() as events:
        model.state_dict()
        optimizer.state_dict()
        schedule.state_dict()
        state = model.state_dict()
    seen = [event for event in events if isinstance(event, StateTaken)]
    assert [(event.kind, event.owner, event.dropped) for event in seen] == [
        ("module", "model", True),
        ("optimizer", "optimizer", True),
        ("schedule", "schedule", True),
        ("module", "model", False),
    ]
    assert state


def test_a_state_that_is_overwritten() -> None:
    model = nn.Sequential(nn.Linear(2, 1))
    best = {name: value.clone() for name, value in model.state_dict().items()}
    empty: dict[str, torch.Tensor] = {}
    with capture_events() as events:
        model.state_dict(destination=best)
        model.state_dict(destination=empty)
    assert [event.into for event in events if isinstance(event, StateTaken)] == ["best", ""]
