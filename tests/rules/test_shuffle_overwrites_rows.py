import pytest

from truestep.events import Shuffled, Site
from truestep.findings import Confidence, Outcome
from truestep.lint import lint
from truestep.rules import Progress
from truestep.rules.shuffle_overwrites_rows import ShuffleOverwritesRows
from truestep.testing import judge

LINE = Site("train.py", 12, 4)


def call(before, after, **fields):
    return Shuffled(site=LINE, rows=100, before=before, after=after, **fields)


def test_rows_that_are_lost_are_found():
    (finding,) = judge(ShuffleOverwritesRows, [call(100, 51), call(51, 26)])
    assert (finding.primary.site, finding.confidence, finding.seen.count) == (LINE, Confidence.HIGH, 2)
    assert finding.message == "`random.shuffle` overwrites rows of a tensor: 26 of 100 are left"
    assert "randperm" in finding.help


def test_an_array_has_another_remedy():
    (finding,) = judge(ShuffleOverwritesRows, [call(100, 51, kind="array")])
    assert "default_rng" in finding.help


def test_shuffles_that_lose_nothing_are_clear():
    assert judge(ShuffleOverwritesRows, [call(2, 2), call(100, 100)]) == []
    rule, run = ShuffleOverwritesRows(), Progress()
    run.note(call(2, 2))
    assert rule.verdict(run).outcome is Outcome.CLEAR


def found(lines):
    head = "import random\nimport numpy as np\nimport torch\nfrom random import shuffle\n"
    return [one.rule for one in lint(head + lines) if one.rule == "shuffle-overwrites-rows"]


@pytest.mark.parametrize(
    "lines",
    [
        "order = torch.arange(9)\nrandom.shuffle(order)",
        "data = torch.cat([a, b])\nshuffle(data)",
        "rows = np.hstack([x, y[:, None]])\nrandom.shuffle(rows)",
        "def f(x, y):\n    rows = np.column_stack([x, y])\n    random.shuffle(rows)\n    return rows",
        "x = torch.tensor([1, 2])\nnp.random.shuffle(x)",
    ],
)
def test_shuffles_of_tensors_and_tables_are_found_in_the_source(lines):
    assert found(lines) == ["shuffle-overwrites-rows"]


@pytest.mark.parametrize(
    "lines",
    [
        "order = list(range(9))\nrandom.shuffle(order)",
        "order = torch.arange(9).tolist()\nrandom.shuffle(order)",
        "order = np.arange(9)\nrandom.shuffle(order)",
        "order = np.hstack([first, second])\nrandom.shuffle(order)",
        "order = np.hstack([x, y])\nrandom.shuffle(order)",
        "rows = np.column_stack([x, y])\nnp.random.shuffle(rows)",
        "order = np.stack([1, 2, 3])\nrandom.shuffle(order)",
        "random.shuffle(files)",
        "parts = torch.split(x, 3)\nparts = list(parts)\nrandom.shuffle(parts)",
    ],
)
def test_other_shuffles_are_quiet_in_the_source(lines):
    assert found(lines) == []
