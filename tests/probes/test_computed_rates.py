"""Rates that a script computes, in the source and in the variables of its loop."""

import textwrap

import pytest
import torch

from truestep.events import RateComputed
from truestep.testing import capture_events

LOOP = """
import torch

def train(steps=12):
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(steps):
        lr = 0.1 * 0.9**step
        {use}
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def rates(tmp_path, use, loop=LOOP):
    path = tmp_path / "train_here.py"
    path.write_text(textwrap.dedent(loop).replace("{use}", use), encoding="utf-8")
    names = {"__name__": "train_here"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    with capture_events() as events:
        names["train"]()
    return [event for event in events if isinstance(event, RateComputed)]


@pytest.mark.parametrize(
    "use",
    [
        "pass", "print(lr)", "print(f'{lr:.3f}')", "print('%.3f' % lr)", "log = [].append(lr)", "print({'lr': lr})",
        "print(round(lr, 3))", "lr = max(lr, 0.01)", "print('{}'.format(lr))",
    ],
)  # fmt: skip
def test_a_rate_that_only_a_log_gets(tmp_path, use):
    found = rates(tmp_path, use)
    assert {event.name for event in found} == {"lr"}
    assert len({event.rate for event in found}) >= 3
    assert found[0].rate == 0.1
    assert found[0].site.line == 8


@pytest.mark.parametrize(
    "use",
    [
        "optimizer.param_groups[0]['lr'] = lr", "scale = lr * 2", "other = [lr]", "weight.data -= lr * 0",
        "step_by_hand = lambda: lr", "assert lr > 0", "dict(a=1).get(lr)",
    ],
)  # fmt: skip
def test_a_rate_that_something_else_reads(tmp_path, use):
    assert "lr" not in {event.name for event in rates(tmp_path, use)}


def test_attributes_and_keys_that_torch_never_reads():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    with capture_events() as events:
        for step in range(3):
            optimizer.lr = 0.1 / (step + 1)
            optimizer.param_groups[0]["learning_rate"] = 0.2 / (step + 1)
            weight.sum().backward()
            optimizer.step()
    found = {(event.name, event.rate) for event in events if isinstance(event, RateComputed)}
    assert ("optimizer.lr", 0.05) in found
    assert ('group["learning_rate"]', 0.2) in found


def test_an_optimizer_of_the_program_may_read_its_attribute():
    class Own(torch.optim.SGD):
        pass

    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = Own([weight], lr=0.1)
    with capture_events() as events:
        for step in range(3):
            optimizer.lr = 0.1 / (step + 1)
            weight.sum().backward()
            optimizer.step()
    assert not [event for event in events if isinstance(event, RateComputed)]


@pytest.mark.parametrize(("name", "count"), [("new_lr", 1), ("learning_rate", 1), ("effective_lr", 0), ("lr_scale", 0)])
def test_names_of_rates(tmp_path, name, count):
    found = rates(tmp_path, "pass", LOOP.replace("        lr = 0.1 *", f"        {name} = 0.1 *"))
    assert len({event.name for event in found}) == count


SCHEDULE = """
import torch

class Schedule:
    def __init__(self):
        self.lr = 0.1

    def advance(self):
        self.lr = self.lr * 0.9

def train(steps=12):
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    schedule = Schedule()
    for step in range(steps):
        schedule.advance()
        {use}
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_a_rate_in_an_attribute_that_only_a_log_gets(tmp_path):
    found = rates(tmp_path, "print(schedule.lr)", SCHEDULE)
    assert {(event.name, event.site.line) for event in found} == {("schedule.lr", 9)}
    assert found[0].rate == pytest.approx(0.09)


def test_a_rate_in_an_attribute_that_the_optimizer_gets(tmp_path):
    found = rates(tmp_path, "optimizer.param_groups[0]['lr'] = schedule.lr", SCHEDULE)
    assert "schedule.lr" not in {event.name for event in found}
