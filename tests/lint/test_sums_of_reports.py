"""Sums that each report divides by the number of iterations since the last one."""

import pytest

from truestep.lint import lint

TRAINING = """
import torch
import torch.nn.functional as F

def main(model, loader, every=100, epochs=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {start}
    for epoch in range(epochs):
        {epoch}
        for step, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            {add}
            if {test}:
                print({report})
                {reset}
"""
DEFAULTS = {
    "start": "running = 0.0",
    "epoch": "pass",
    "add": "running += loss.item()",
    "test": "step % every == every - 1",
    "report": "running / every",
    "reset": "pass",
}


def found(**parts):
    return [one.rule for one in lint(TRAINING.format(**(DEFAULTS | parts)))]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"test": "step % 100 == 99", "report": "f'{step}: {running / 100:.3f}'"},
        {"test": "step and not step % every"},
        {"start": "running = 0", "add": "running += loss.detach()", "report": "running.item() / every"},
    ],
    ids=["names", "numbers", "negation", "a tensor"],
)
def test_a_sum_that_goes_on_is_found(parts):
    assert found(**parts) == ["metric-misreported"]


@pytest.mark.parametrize(
    "parts",
    [
        {"reset": "running = 0.0"},
        {"reset": "running -= running"},
        {"epoch": "running = 0.0"},
        {"report": "running / (step + 1)"},
        {"test": "(step + 1) % len(loader) == 0", "report": "running / len(loader)"},
        {"test": "epoch % epochs == 0", "report": "running / epochs"},
        {"start": "running, seen = 0.0, 0"},
        {"start": "meter = Meter()", "add": "meter.update(loss)", "report": "meter.sum / every"},
        {"add": "running = 0.9 * running + loss.item()"},
        {"reset": "break"},
        {"start": "tokens = 0", "add": "tokens += x.numel()", "report": "tokens / every"},
        {"start": "count = 0", "add": "count += 1", "report": "count / every"},
    ],
    ids=[
        "set to zero",
        "its own value is taken away",
        "once in each epoch",
        "of all iterations",
        "a whole pass",
        "the whole run",
        "a tuple",
        "an object",
        "a moving average",
        "one report",
        "a number of tokens",
        "a number of reports",
    ],
)
def test_other_sums_are_quiet(parts):
    assert found(**parts) == []
