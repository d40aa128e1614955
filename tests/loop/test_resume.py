"""A run that was stopped and resumed is the run that was not: weights, averages, losses, random draws, log lines."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from tiers import only

PROGRAM = Path(__file__).parent / "programs" / "training.py"


def load():
    spec = importlib.util.spec_from_file_location("training_program", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


training = load()


def result(out):
    final = torch.load(out / "final.pt", weights_only=True)
    return final, (out / "metrics.jsonl").read_bytes()


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


VARIANTS = {
    "plain": [],
    "accumulate": ["--accumulate", "4"],
    "fp16": ["--precision", "fp16"],
    "fp16-accumulate": ["--precision", "fp16", "--accumulate", "2"],
    "asynchronous": ["--asynchronous"],
    "workers": ["--workers", "2"],
    "iterable": ["--iterable"],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The uninterrupted run of each variant, made once."""
    known = {}

    def of(variant):
        if variant not in known:
            out = tmp_path_factory.mktemp("whole") / variant
            training.main([str(out), *VARIANTS[variant]])
            known[variant] = result(out)
        return known[variant]

    return of


@pytest.mark.filterwarnings("ignore:.*items again")
@pytest.mark.parametrize(
    ("variant", "stops"),
    only(
        [("plain", (70,))],
        [*((variant, (70,)) for variant in VARIANTS), ("plain", (30, 60, 100, 150)), ("workers", (120,))],
    ),
)
def test_a_resumed_run_is_the_uninterrupted_one(variant, stops, whole, tmp_path):
    out = tmp_path / "run"
    for stop in stops:
        with pytest.raises(training.Stopped):
            training.main([str(out), *VARIANTS[variant], "--stop-at", str(stop)])
    run = training.main([str(out), *VARIANTS[variant]])
    final, lines = whole(variant)
    ours, our_lines = result(out)
    assert our_lines == lines
    assert same(ours, final)
    assert run.state.seen == 180


def test_a_run_stopped_before_its_first_checkpoint_begins_again(whole, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(training.Stopped):
        training.main([str(out), "--stop-at", "8"])
    training.main([str(out)])
    final, lines = whole("plain")
    assert result(out)[1] == lines
    assert same(result(out)[0], final)


def test_a_finished_run_gives_nothing_when_it_is_resumed(whole, tmp_path):
    out = tmp_path / "run"
    training.main([str(out)])
    before = result(out)
    run = training.main([str(out)])
    assert run.global_step == 45
    assert same(result(out)[0], before[0])
    assert result(out)[1] == before[1]


def test_every_step_is_logged_once(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(training.Stopped):
        training.main([str(out), "--stop-at", "100"])
    training.main([str(out)])
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 46))
    assert [line["epoch"] for line in lines if "val_loss" in line] == [0, 1, 2]
