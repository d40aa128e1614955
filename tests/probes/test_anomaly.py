"""Backward passes under anomaly detection: the line that switches it on, if it is the only one of the file."""

import pytest

from truestep.events import AnomalyModeSeen
from truestep.testing import capture_events

TRAINING = """
import torch

def train(check=True):
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    {switch}
        for _ in range(3):
            weight.square().sum().backward()
            optimizer.step()
"""
ONE = "with torch.autograd.set_detect_anomaly(True):"
TWO = "with torch.autograd.set_detect_anomaly(check), torch.autograd.set_detect_anomaly(True):"


@pytest.mark.parametrize(("switch", "line"), [(ONE, 7), (TWO, None)], ids=["one", "two"])
def test_the_only_line_that_switches_it_on(tmp_path, switch, line):
    path = tmp_path / "train_here.py"
    path.write_text(TRAINING.format(switch=switch), encoding="utf-8")
    names = {"__name__": "train_here"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    with capture_events() as events:
        names["train"]()
    seen = [event for event in events if isinstance(event, AnomalyModeSeen)]
    assert {(event.site.line, event.switch and event.switch.line) for event in seen} == {(9, line)}
