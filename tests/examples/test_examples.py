"""The examples on real data: each runs, learns, and is quiet under supervision."""

import json
from pathlib import Path

import pytest
from programs import DATA, REPOSITORY, supervise

EXAMPLES = {
    "digits.py": ["--epochs", "3"],
    "fashion_mnist.py": ["--steps", "60"],
    "reviews.py": ["--epochs", "2"],
    "shakespeare.py": ["--steps", "60", "--width", "32", "--layers", "1", "--block", "32"],
}
NEEDS = {"fashion_mnist.py": "fashion-mnist", "reviews.py": "rt-polarity", "shakespeare.py": "tinyshakespeare"}
LONGEST = 90


SLOW = {"fashion_mnist.py"}


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EXAMPLES])
def example(request: pytest.FixtureRequest) -> Path:
    folder = NEEDS.get(request.param)
    if folder and not (DATA / folder).is_dir():
        pytest.skip(f"{DATA} has no {folder}")
    return REPOSITORY / "examples" / request.param


def losses(out: Path) -> list[float]:
    """Return the losses of the steps, in order."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


FALLS_TO = {"digits.py": 0.35, "fashion_mnist.py": 0.75, "reviews.py": 0.68, "shakespeare.py": 3.1}
"""What the mean of the last losses is below, with seed 0; at the beginning it is ln 10, ln 10, ln 2 and ln 65."""


def test_example_is_quiet_under_supervision_and_learns(example: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = supervise(example, *EXAMPLES[example.name], "--out", str(out))
    assert run.how == "finished", str(run)
    assert run.findings == [], str(run)
    assert run.errors == [], str(run)
    assert run.steps >= 60, str(run)
    last = losses(out)[-10:]
    assert sum(last) / len(last) < FALLS_TO[example.name]


def test_example_is_short_enough_to_be_read_aloud(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) <= LONGEST
