"""`truestep bench-inference`: ways to run a model, compared with eager, and timed in turns."""

import json

import pytest
import torch
from commands import called
from torch import nn

from truestep.experiments.inference.measured import read
from truestep.experiments.instruments.inference import measuring
from truestep.experiments.instruments.inference.measuring import measure
from truestep.experiments.instruments.inference.subject import subject_of_call
from truestep.experiments.instruments.inference.ways import Way
from truestep.experiments.reports.inference import document, text
from truestep.experiments.reports.pages import inference_page

SCRIPT = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    loss = nn.functional.cross_entropy(model(torch.randn(6, 4)), torch.arange(6) % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def times(**changed):
    """Values of `measure` with times that are made up: turns of 1 s for eager."""
    ways = {"eager": 1.0, "control": 1.01, "faster": 0.5, "other": 0.25, "even": 1.0} | changed
    rows = [
        {
            "way": name,
            "calls": 40,
            "median": turn,
            "p95": turn,
            "p99": None,
            "per_second": 8 / turn,
            "turns": [turn] * 9,
        }
        for name, turn in ways.items()
    ]
    return {
        "reference": "eager",
        "tolerance": 1e-4,
        "settings": [{"batch": 8, "threads": 1, "ways": rows}],
        "built": [
            *({"way": name, "threads": 1, "fault": "", "seconds": 0.1} for name in ways),
            {"way": "onnx", "threads": 1, "fault": "onnx is not installed", "seconds": 0.0},
        ],
        "apart": {name: {"fault": "", "relative": 0.3 if name == "other" else 0.0} for name in ways},
        "left_out": ["compiled"],
        "stable": True,
    }


def test_the_fastest_way_with_equal_outputs_is_named():
    found = read(times(), "Net")
    (one,) = found.settings
    assert one.best.name == "faster"
    assert {row.name: row.status for row in one.rows} == {
        "eager": "reference", "faster": "gain", "other": "differs", "even": "no gain",
    }  # fmt: skip
    said = text(found)
    assert "8 samples, 1 thread: faster is 2.00x as fast" in said
    assert "other gives other outputs: relative difference 0.3, tolerance 1e-04" in said
    assert "onnx: failed: onnx is not installed" in said
    assert "not measured, since the budget was spent: compiled" in said
    assert all(len(line) <= 80 for line in said.splitlines())
    values = json.loads(json.dumps(document(found)))
    assert values["settings"][0]["best"] == "faster"
    assert values["settings"][0]["rows"][1]["speed"] == 2.0


def test_a_gain_within_the_noise_is_none():
    found = read(times(faster=0.95, control=0.92), "Net")
    assert found.settings[0].best is None
    assert "nothing with equal outputs is faster than eager beyond the noise" in " ".join(text(found).split())
    assert not found.settings[0].even


def test_the_page_has_the_table_and_the_sentence():
    page = inference_page("truestep bench-inference train.py", read(times(), "Net"), "as text")
    assert page.parts[0].tables[0].rows[1].cells[0] == "faster"
    assert "2.00x" in page.headline


def test_outputs_are_compared_and_ways_that_fail_are_named(tmp_path, monkeypatch):
    def broken(subject):
        raise RuntimeError("no kernel\nfor this")

    ways = [
        Way("eager", lambda subject: lambda call: subject.model(*call.args)),
        Way("other", lambda subject: lambda call: subject.model(*call.args) + 1),
        Way("broken", broken),
    ]
    monkeypatch.setattr(measuring, "ways_of", lambda subject: ways)
    subject = subject_of_call(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), (torch.randn(6, 4),), {}, tmp_path)
    found = read(measure(subject, [1, 6], [1], budget_s=3.0), "Net")
    assert [(one.batch, one.threads) for one in found.settings] == [(1, 1), (6, 1)]
    assert {row.name: row.status for row in found.settings[0].rows} == {"eager": "reference", "other": "differs"}
    assert all(row.calls > 0 and row.per_second > 0 for one in found.settings for row in one.rows)
    assert found.failed == {"broken": "RuntimeError: no kernel for this"}
    assert found.stable, "dropout is off"


def test_a_model_that_draws_is_not_compared(tmp_path):
    class Noisy(nn.Linear):
        def forward(self, x):
            return super().forward(x) + torch.rand(1)

    subject = subject_of_call(Noisy(4, 3), (torch.randn(6, 4),), {}, tmp_path)
    found = read(measure(subject, [2], [1], only=["inference_mode"], budget_s=0.5), "Noisy")
    assert not found.stable
    assert "eager gives other outputs in each call: no outputs were compared" in text(found)


@pytest.mark.program
def test_the_model_of_a_script_is_timed_after_two_steps(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    chosen = ("--only", "inference_mode,with gradients", "--budget", "5", "--threads", "1", "--batch", "2")
    done = called(capfd, monkeypatch, "bench-inference", *chosen, "--report", "page.html", "train.py")
    assert done.code == 0, done.err
    assert "Sequential `model`, on the CPU" in done.out
    assert "inputs of a training step: input_0 [6, 4]" in done.out
    assert [name for name in ("eager", "with gradients", "inference_mode") if name in done.out]
    assert "2 samples, 1 thread" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "jit", "train.py"], 'unknown way "jit"'),
        (["--batch", "0", "train.py"], "--batch must be at least 1, got 0"),
        (["model.pt"], "neither a script nor a folder"),
        (["folder", "argument"], "argument comes after folder"),
    ],
)
def test_wrong_use_is_an_error(tmp_path, capfd, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = called(capfd, monkeypatch, "bench-inference", *arguments)
    assert done.code == 2
    assert said in done.err
