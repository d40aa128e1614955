"""`truestep run` adds to a program that trains one line at once and one report at the end, nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TRUESTEP = [sys.executable, "-m", "truestep"]

TRAIN = """
    import os, sys
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        x = torch.randn(8, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        if "clear" in sys.argv:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item(), [p.tolist() for p in model.parameters()], torch.rand(1).item(), flush=True)
    left_open = open("left_open.txt", "w")
    left_open.write("all of it")
    exec(sys.argv[1])
    """
GUILTY = 14


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAIN))
    return tmp_path


def call(folder: Path, command: list[str]) -> tuple[int, str, str]:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    return call(folder, [*TRUESTEP, "run", *arguments])


@pytest.mark.program
def test_report_follows_the_script_which_stays_as_it_was(folder: Path) -> None:
    plain = call(folder, [sys.executable, "train.py", "print('end', file=sys.stderr)"])
    code, out, err = run(folder, "train.py", "print('end', file=sys.stderr)")
    assert (code, out) == plain[:2]
    first, then, *report = err.splitlines()
    assert first.startswith(f"truestep: error[missing-zero-grad] train.py:{GUILTY}: ")
    assert then == "end"
    assert report[0].startswith("error[missing-zero-grad]: ")
    assert sum(line.startswith("error[") for line in report) == 1


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("os.chdir('/'); 1 / 0", 1),
        ("os._exit(5)", 5),
        ("os.kill(os.getpid(), 15)", -signal.SIGTERM),
        ("sys.stderr.close(); raise KeyboardInterrupt", -signal.SIGINT),
    ],
)
def test_report_comes_however_the_script_ends(ending: str, code: int, folder: Path) -> None:
    got, out, err = run(folder, "--fail-on", "warning", "train.py", ending)
    assert got == code
    assert out.startswith("loss ")
    assert err.count("\nerror[missing-zero-grad]: ") == 1
    assert f"--> train.py:{GUILTY}:" in err
    assert "truestep/" not in err


@pytest.mark.program
def test_fail_on_changes_the_exit_code_of_success_and_nothing_else(folder: Path) -> None:
    assert run(folder, "--fail-on", "error", "train.py", "import atexit; atexit.register(print, 'bye')")[0] == 1
    assert (folder / "left_open.txt").read_text() == "all of it"
    assert run(folder, "--fail-on", "error", "--ignore", "missing-zero-grad", "train.py", "sys.exit(0)")[0] == 0


def test_quiet_says_nothing_about_a_clean_run(folder: Path) -> None:
    code, _, err = run(folder, "--quiet", "--select", "missing-zero-grad", "train.py", "", "clear")
    assert (code, err) == (0, "")


def test_stop_on_error_ends_the_script(folder: Path) -> None:
    code, out, err = run(folder, "--stop-on", "error", "--fail-on", "error", "train.py", "")
    assert (code, out) == (1, "")
    assert "error[missing-zero-grad]: " in err


@pytest.mark.program
def test_json_report_is_all_that_is_written_and_replays_the_same(folder: Path) -> None:
    _, _, err = run(folder, "--format", "json", "--record", "rec", "train.py", "")
    report = json.loads(err)
    assert [finding["rule"] for finding in report["findings"]] == ["missing-zero-grad"]
    code, out, _ = call(folder, [*TRUESTEP, "replay", "--format", "json", "rec"])
    replayed = json.loads(out)
    assert code == 0
    assert replayed.pop("record") == "rec"
    assert report.pop("record") == str(folder / "rec")
    assert replayed == report


@pytest.mark.program
def test_output_file_is_found_from_where_the_script_was_begun(folder: Path) -> None:
    code, _, err = run(folder, "--steps", "3", "--format", "json", "--output", "out/report.json", "train.py", "")
    assert code == 0
    live, wrote = err.splitlines()
    assert live.startswith("truestep: error[missing-zero-grad] train.py:")
    assert wrote == "truestep: wrote the report to out/report.json"
    code, _, err = run(folder, "--quiet", "--format", "json", "--output", "quiet.json", "train.py", "")
    assert (len(err.splitlines()), (folder / "quiet.json").exists()) == (1, True)
    code, _, err = call(folder / "out", [*TRUESTEP, "run", "../train.py", ""])
    assert f"truestep: error[missing-zero-grad] ../train.py:{GUILTY}: " in err
    assert f"\n  --> ../train.py:{GUILTY}:" in err
    assert json.loads((folder / "out/report.json").read_text())["ended"] == "stopped"


def test_workers_and_forks_are_left_alone(folder: Path) -> None:
    script = """
        import os, sys, torch
        from torch.utils.data import DataLoader, TensorDataset
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for (x,) in DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=2, num_workers=1):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        if os.fork() == 0:
            model(x).sum().backward()
            optimizer.step()
            sys.exit(0)
        print(os.wait()[1])
        """
    (folder / "loader.py").write_text(textwrap.dedent(script))
    code, out, err = run(folder, "--quiet", "loader.py")
    assert (code, out, err) == (0, "0\n", "")
