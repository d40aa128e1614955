"""`truestep runs`: runs are found, described by their files, and compared."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import truestep as ts
from truestep.cli import main
from truestep.runs.compared import compared
from truestep.runs.described import describe
from truestep.runs.folders import runs_below

RECORD = """{"format":"truestep.record/1","started":{"script":"train.py","torch":"2.13.0"}}
"""


def train(out, seed=0, stop_at=None, **settings):
    """Train three epochs with a run, as far as `stop_at`."""
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    with ts.Run(out=out, seed=seed, max_epochs=3, progress=False, watch=False, **settings) as run:
        loader = run.loader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
        model = run.model(torch.nn.Linear(4, 1))
        run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for epoch in run.epochs():
            for a, b in run.train(loader, model):
                loss = torch.nn.functional.mse_loss(model(a), b)
                run.step(loss)
                run.log({"loss": loss})
            run.log({"accuracy": 0.5 + epoch / 10})
            run.save(metric=float(loss.detach()))
            if epoch == stop_at:
                assert describe(Path(out)).state == "running"
                return


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train("runs/a", seed=1)
    train("runs/deep/b", seed=2, stop_at=1, clip_norm=1.0)
    Path("rec").mkdir()
    Path("rec/rank-0.jsonl").write_text(RECORD + '{"ended":"crashed","truncated":false,"internal_errors":[]}\n')
    return tmp_path


def called(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["runs", *arguments])
    return ended.value.code, capsys.readouterr().out


def test_runs_have_their_state_steps_and_results(folder, capsys):
    code, out = called(capsys, "--format", "json")
    assert code == 0
    record, a, b = json.loads(out)
    assert [run["path"] for run in (record, a, b)] == ["rec", "runs/a", "runs/deep/b"]
    assert [(run["kind"], run["state"], run["steps"]) for run in (record, a, b)] == [
        ("record", "crashed", 0),
        ("run", "finished", 6),
        ("run", "unfinished", 4),
    ]
    lines = [json.loads(line) for line in Path("runs/a/metrics.jsonl").read_text().splitlines()]
    assert a["results"]["loss"] == [line["loss"] for line in lines if "loss" in line][-1]
    assert a["results"]["accuracy"] == 0.7
    assert a["best"] == json.loads(Path("runs/a/checkpoints/best/manifest.json").read_text())["metric"]
    assert (record["findings"], a["findings"]) == ([], None)


def test_the_list_has_a_row_for_each_run_and_no_empty_column(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out = called(capsys, "runs")
    head, *rows = out.splitlines()
    assert [name for name in head.split() if name != "revision"] == ["run", "when", "steps", "loss", "metric", "state"]
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [
        ("runs/a", "finished"),
        ("runs/deep/b", "unfinished"),
    ]
    assert "accuracy 0.7" in rows[0]
    assert all(len(row) <= 80 and row == row.rstrip() for row in out.splitlines())


def test_two_runs_are_compared_by_what_differs(folder, capsys):
    _, out = called(capsys, "runs/a", "runs/deep/b", "--format", "json")
    result = json.loads(out)
    assert result["settings"] == {"seed": ["1", "2"], "clip_norm": ["null", "1.0"]}
    assert result["results"]["accuracy"] == [0.7, 0.6]
    _, out = called(capsys, "runs/a", "runs/deep/b")
    rows = [line.split() for line in out.splitlines()]
    assert ["seed", "1", "2"] in rows
    assert ["accuracy", "0.7", "0.6"] in rows
    assert ["state", "finished", "unfinished"] in rows
    mixed = compared(describe(Path("rec")), describe(Path("runs/a")))
    assert set(mixed.settings) <= {"revision", "package torch"}
    assert compared(describe(Path("runs/a")), describe(Path("runs/a"))).settings == {}


def test_a_killed_run_leaves_a_line_that_is_skipped(folder):
    with open("runs/deep/b/metrics.jsonl", "a") as log:
        log.write('{"step": 5, "epoch": 1, "lo')
    assert describe(Path("runs/deep/b")).steps == 4


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(folder, capsys):
    Path("runs/a/settings.json").write_text("[]")
    Path("rec/rank-0.jsonl").write_text("no record")
    code, out = called(capsys)
    assert code == 0
    assert "runs/a cannot be read: ValueError: settings.json has no object" in out
    assert "rec cannot be read: line 1 of rank-0.jsonl is not part of a record" in out


def test_checkpoints_and_hidden_folders_hold_no_runs(folder):
    (folder / ".hidden").mkdir()
    os.rename(folder / "rec", folder / ".hidden" / "rec")
    assert [path.name for path in runs_below(folder)] == ["a", "b"]
    assert runs_below(folder / "runs" / "a") == [folder / "runs" / "a"]


@pytest.mark.program
@pytest.mark.cold
def test_a_folder_without_runs_and_a_missing_one(tmp_path):
    code = "import sys; sys.modules['torch'] = None\nfrom truestep.cli import main; main()"
    command = [sys.executable, "-c", code, "runs"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"no runs in {tmp_path}")
    done = subprocess.run([*command, "missing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("UsageError: missing is not a folder")
