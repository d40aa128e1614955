"""`truestep repeat`: equal runs are reproducible, and a difference has its step, operation and cause."""

import json
import os
import random
import shutil
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import called

from truestep.errors import NoExperiment
from truestep.experiments.changes.harness.controlled import SOURCES as CONTROLLED
from truestep.experiments.changes.harness.controlled import Controlled
from truestep.experiments.instruments.state.operations import Operations
from truestep.experiments.repeat.operation import first_operation, read
from truestep.experiments.repeat.repeat import RepeatVerdict, repeat
from truestep.experiments.repeat.sources import SOURCES
from truestep.experiments.reports.repeat import document, sentence, text
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import RunOutcome, Step
from truestep.supervision.launching.launch import Target

PROGRAM = Path(__file__).parent / "programs" / "repeated.py"


def line(loss, weights="0" * 8):
    state = {"state": {}, "rates": [0.1], "settings": [], "schedules": [], "scalers": [], "buffers": {}}
    state |= {"untrained": {}, "random": {}, "put_back": [], "batches": [], "reads": 0, "optimizer": "SGD 0"}
    weighed = {"weights": weights, "after": weights, "sample": [1.0], "sample_after": [0.9]}
    return json.dumps({"step": {**state, **weighed, "loss": loss}}) + "\n"


class Place:
    def __init__(self, bench):
        self.bench = bench
        self.results = bench.results

    def run(self, variant, from_start=False):
        self.bench.began.append(variant.name)
        losses, said, how = self.bench.losses(variant, len(self.bench.began))
        steps = self.bench.steps or len(losses)
        (self.results / "prints.jsonl").write_text("".join(map(line, losses[:steps])))
        (self.results / "operations.jsonl").unlink(missing_ok=True)
        return RunOutcome(variant, how, tuple(Step(0, loss, 1.0, 0.1) for loss in losses), 1.0, said=said)


class Runs:
    """A bench with runs of given losses; `dataclasses.replace` of it keeps its records."""

    target = Target("train.py", ())

    def __init__(self, folder, losses, steps=None):
        self.results, self.losses, self.steps, self.began = folder, losses, steps, []

    @contextmanager
    def place(self):
        yield Place(self)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    def made(losses):
        return Runs(tmp_path, losses)

    def shorter(bench, steps):
        bench.steps = steps
        return bench

    from truestep.experiments.repeat import repeat as module

    known = module.replace
    monkeypatch.setattr(
        module,
        "replace",
        lambda thing, **values: shorter(thing, **values) if type(thing) is Runs else known(thing, **values),
    )
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    return made


def left_out(variant):
    """Return the sources that a run does not control; all of them for a run as it is."""
    if not variant.changes:
        return {*CONTROLLED, "hash"}
    left = set(CONTROLLED) - set(variant.changes[0][1]["sources"])
    return left | ({"hash"} if variant.environment["PYTHONHASHSEED"] != "0" else set())


def test_equal_runs_are_reproducible(runs):
    bench = runs(lambda variant, number: ([3.0, 2.0, 1.0], "accuracy 0.5", "finished"))
    result = repeat(bench, 3)
    assert bench.began == ["run 1", "run 2", "run 3"]
    assert result.verdict is RepeatVerdict.EQUAL
    assert text(result) == "reproducible: 3 runs of 3 steps are equal, bit by bit"


@pytest.mark.parametrize("cause", SOURCES)
def test_the_source_that_is_not_controlled_is_the_cause(runs, cause):
    def losses(variant, number):
        return [3.0, 2.0 + number * (cause in left_out(variant)), 1.0], "", "stopped"

    result = repeat(runs(losses))
    assert (result.verdict, result.first, result.pieces) == (RepeatVerdict.DIFFERS, 2, ("loss",))
    assert [source.name for source in result.causes] == [cause]
    assert f"1. {SOURCES[cause].title}" in text(result)
    assert document(result)["causes"][0]["source"] == cause


def test_a_difference_that_no_source_explains_says_where_to_look(runs):
    result = repeat(runs(lambda variant, number: ([3.0 + number], "", "finished")))
    assert (result.causes, result.controlled) == ((), False)
    assert "before torch is imported" in text(result)


def test_a_difference_in_the_last_digits_is_rounding(runs):
    def losses(variant, number):
        return [3.0, 2.0 * (1 + 1e-9 * number * ("threads" in left_out(variant)))], "", "finished"

    result = repeat(runs(losses))
    assert result.verdict is RepeatVerdict.ROUNDING
    assert [source.name for source in result.causes] == ["threads"]


def test_an_evaluation_that_is_random_is_seen_in_the_output(runs):
    result = repeat(runs(lambda variant, number: ([1.0], f"loss 0.5 accuracy 0.{number}", "finished")))
    assert result.verdict is RepeatVerdict.DIFFERS
    assert "the evaluation is random" in sentence(result)
    assert "accuracy 0.1 and 0.2" in sentence(result)


def test_another_number_of_steps_is_a_difference(runs):
    result = repeat(runs(lambda variant, number: ([1.0] * (1 + number * (not variant.changes)), "", "finished")))
    assert (result.first, result.pieces) == (3, ("number of steps",))


@pytest.mark.parametrize(
    ("end", "said"), [(([], "", "finished"), "without training"), (([1.0], "Error", "crashed"), "crashed")]
)
def test_runs_that_cannot_be_judged_are_errors(runs, end, said):
    with pytest.raises(NoExperiment, match=said):
        repeat(runs(lambda variant, number: end))


def test_ctrl_c_keeps_the_first_difference_and_the_causes_found(runs):
    def losses(variant, number):
        if number > 7:
            raise KeyboardInterrupt
        return [3.0, 2.0 + number * ("torch" in left_out(variant))], "", "finished"

    result = repeat(runs(losses))
    assert (result.first, result.interrupted, [one.name for one in result.causes]) == (2, True, ["torch"])
    assert text(result).endswith("there can be more causes")


@pytest.mark.parametrize(
    ("source", "draw"),
    [
        ("torch", lambda: float(torch.rand(()))),
        ("python", random.random),
        ("numpy", lambda: float(np.random.rand())),
        ("system", lambda: (float(np.random.default_rng().random()), random.SystemRandom().random(), os.urandom(40))),
        ("clock", lambda: time.time()),  # looked up at the call
    ],
)
def test_a_controlled_source_gives_the_same_values_again(source, draw):
    def drawn(sources):
        with ExitStack() as stack:
            Controlled(sources).install(stack)
            return [draw(), draw()]

    def once(sources):  # one place of the call, as in two runs of a program
        return drawn(sources)

    one, other = (once((source,)) for _ in range(2))
    assert one == other
    assert one[0] != one[1]
    assert drawn(tuple(name for name in CONTROLLED if name != source)) != one


def recorded(folder, seed, factor=1.0, after=0):
    folder.mkdir()
    with ExitStack() as stack:
        instrument = Operations(folder, "train.py", after)
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.empty(3))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        instrument.install(stack)
        torch.manual_seed(seed)
        torch.nn.init.normal_(weight)
        for _ in range(3):
            (weight * factor).sum().backward()
            optimizer.step()
    return read(folder / "operations.jsonl")


def test_the_first_operation_that_differs_is_named(tmp_path):
    equal = recorded(tmp_path / "a", 0)
    assert equal
    assert first_operation(equal, recorded(tmp_path / "b", 0)) is None
    drawn = first_operation(equal, recorded(tmp_path / "c", 1))
    assert (drawn.name, drawn.why, Path(drawn.line.partition(":")[0]).name) == (
        "aten.normal_",
        "draws",
        Path(__file__).name,
    )
    given = first_operation(equal, recorded(tmp_path / "d", 0, factor=2.0))
    assert (given.name, given.why) == ("aten.mul", "given")


def test_the_step_that_is_recorded_is_the_one_asked_for(tmp_path):
    first, third = recorded(tmp_path / "a", 0), recorded(tmp_path / "b", 0, after=2)
    assert sum(name.startswith("aten.normal_") for name, *_ in first) == 1
    assert not [name for name, *_ in third if name.startswith("aten.normal_")]
    assert sum(name.startswith("aten.mul.") for name, *_ in third) == sum(n.startswith("aten.mul.") for n, *_ in first)


def test_memory_without_values_is_no_difference(tmp_path):
    results = []
    for name, value in (("a", 1.0), ("b", 2.0)):
        (tmp_path / name).mkdir()
        with ExitStack() as stack:
            instrument = Operations(tmp_path / name, "train.py")
            instrument.install(stack)
            memory = torch.empty(1000)
            instrument._end()
            memory.fill_(value)  # what the next process may find there
        results.append(read(tmp_path / name / "operations.jsonl"))
    assert results[0] == results[1] != []


@pytest.mark.program
def test_the_command_names_the_cause(tmp_path, monkeypatch, capfd):
    shutil.copy(PROGRAM, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    monkeypatch.setattr("truestep.experiments.repeat.repeat.SOURCES", {"python": SOURCES["python"]})
    done = called(capfd, monkeypatch, "repeat", "--format", "json", "repeated.py", "python")
    assert done.code == 1, done.err
    result = json.loads(done.out)
    assert (result["verdict"], result["first"], result["pieces"]) == ("not reproducible", 4, ["loss"])
    assert result["operation"] == {"name": "aten.add", "line": "repeated.py:27", "why": "given"}
    assert [cause["source"] for cause in result["causes"]] == ["python"]
    assert result["equal_if_controlled"] is True


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["nothing", "printed", "torch", "numpy", "system", "hash", "clock"])
def test_every_source_of_a_program_is_found(kind, tmp_path, monkeypatch):
    shutil.copy(PROGRAM, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    result = repeat(Bench(Target("repeated.py", (kind,)), 100, folder=tmp_path))
    assert [source.name for source in result.causes] == ([kind] if kind in SOURCES else [])
    assert (result.verdict is RepeatVerdict.EQUAL) == (kind == "nothing")
    assert (result.first is None) == (kind in ("nothing", "printed"))
