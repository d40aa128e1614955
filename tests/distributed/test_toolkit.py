"""Runs of the toolkit on several ranks: the same results as one process, checkpoints, stops, errors.

The results of each loop are compared with those of a single rank with the same global batches.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from several_ranks import torchrun, warm_ranks

from truestep.errors import BadSettings, SeveralProcesses
from truestep.loop.ranks import launch
from truestep.loop.ranks.data_parallel import DataParallel
from truestep.loop.run.run import Run

PROGRAMS = Path(__file__).parent / "programs"
LOOPS = re.findall(r"@loop\ndef (\w+)", (PROGRAMS / "toolkit_loops.py").read_text())
Results = dict[int, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return the results of all loops, by number of ranks."""
    found = {}
    for ranks in (1, 2, 4):
        folder = tmp_path_factory.mktemp(f"ranks-{ranks}")
        code, out, err = warm_ranks([str(PROGRAMS / "toolkit_loops.py")], folder, ranks=ranks)
        assert code == 0, err
        assert err == "", "no warning of torch about its reducer"
        found[ranks] = json.loads(out)
    return found


@pytest.mark.program
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("loop", LOOPS)
def test_results_do_not_depend_on_the_number_of_ranks(results: Results, loop: str, ranks: int) -> None:
    own, alone = results[ranks][loop], results[1][loop]
    for name in alone.keys() - {"refused", "lr", "samples"}:
        assert own[name] == pytest.approx(alone[name], abs=1e-5), name
    if loop == "data_loaders":
        assert alone["refused"] == ""
        assert "run.loader(dataset, batch_size=...)" in own["refused"]
    if loop == "decisions_of_rank_0":
        assert own["lr"] == alone["lr"], "one learning rate on all ranks"


def run_resumed(folder: Path, *arguments: str, ranks: int = 2, launch: Any = warm_ranks) -> tuple[int, str, str]:
    code, out, err = launch([str(PROGRAMS / "toolkit_resume.py"), str(folder / "run"), *arguments], folder, ranks=ranks)
    return code, str(out), str(err)


@pytest.mark.program
def test_a_run_that_is_stopped_on_one_rank_goes_on_as_if_it_was_not(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    code, straight, err = run_resumed(whole)
    assert code == 0, err
    code, out, err = run_resumed(parts, "7", "1")
    assert (code, out) == (143, ""), err
    saved = parts / "run" / "checkpoints" / "last"
    assert json.loads((saved / "manifest.json").read_text())["step"] in (8, 9, 10), (
        "at the latest at the end of the epoch"
    )
    assert (saved / "rng-rank1.pt").exists()
    shutil.copytree(parts, tmp_path / "fewer", symlinks=True)
    code, out, err = run_resumed(parts)
    assert (code, out) == (0, straight), err
    assert (parts / "run" / "metrics.jsonl").read_bytes() == (whole / "run" / "metrics.jsonl").read_bytes()
    code, out, err = run_resumed(tmp_path / "fewer", ranks=1)  # dropout draws other numbers
    assert (code, out[:3]) == (0, "15 "), err


@pytest.mark.slow
def test_torchrun_starts_a_run(tmp_path: Path) -> None:
    code, out, err = run_resumed(tmp_path, launch=torchrun)
    assert code == 0, err
    assert out.count("\n") == 1, "one rank prints"
    assert "reducer" not in err


@pytest.mark.program
def test_a_second_run_in_the_folder_is_refused_once(tmp_path: Path) -> None:
    assert run_resumed(tmp_path)[0] == 0
    program = tmp_path / "again.py"
    program.write_text(f"from truestep import Run\nRun(out={str(tmp_path / 'run')!r}, device='cpu', watch=False)\n")
    code, out, err = warm_ranks([str(program)], tmp_path)
    assert (code, out) == (1, "")
    assert err.count("errors.FolderHoldsRun") == 1, err


@pytest.mark.slow
def test_torchrun_starts_a_run_again_after_a_rank_was_killed(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    code, whole, err = run_resumed(tmp_path / "whole")
    assert code == 0, err
    program = tmp_path / "killed_once.py"
    program.write_text(
        "import os, pathlib, runpy, signal, sys, threading\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "def kill():\n"
        "    while not (folder / 'run' / 'checkpoints' / 'step-000005').exists(): pass\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "if os.environ['RANK'] == '1' and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    threading.Thread(target=kill, daemon=True).start()\n"
        f"sys.argv = ['toolkit_resume.py', {str(tmp_path / 'run')!r}]\n"
        f"runpy.run_path({str(PROGRAMS / 'toolkit_resume.py')!r}, run_name='__main__')\n"
    )
    code, out, err = torchrun(["--max-restarts", "2", str(program)], tmp_path)
    assert (code, out) == (0, whole), err
    assert "Signal 9 (SIGKILL)" in err or "exitcode: -9" in err, err


# --- ranks that do not answer ---


@pytest.mark.program
@pytest.mark.parametrize(
    ("how", "strategy", "ranks", "reason"),
    [
        ("killed", "ddp", 3, "rank 1 did not answer: killed, or stopped; this rank waited at .*silent_rank.py:32"),
        ("killed", "fsdp", 2, "rank 1 did not answer: killed, or stopped; this rank waited at .*silent_rank.py:32"),
        ("late", "ddp", 3, "rank 1 did not come: .* at .*silent_rank.py:22; this rank waited at .*silent_rank.py:32"),
        ("raises", "ddp", 2, "rank 1 has ended with ValueError; this rank waited at .*silent_rank.py:32"),
    ],
    ids=["killed", "killed-with-parts", "late", "raises"],
)
def test_a_rank_that_does_not_answer_is_named(tmp_path: Path, how: str, strategy: str, ranks: int, reason: str) -> None:
    code, out, err = warm_ranks([str(PROGRAMS / "silent_rank.py"), how, strategy], tmp_path, ranks=ranks)
    assert (code, out) == (1, "")
    assert len(re.findall(f"errors.RankDoesNotAnswer: {reason}", err)) == ranks - 1, err


# --- the launch ---


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_variables(**variables: str) -> None:
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(launch, "_RANK_0_FIRST_S", 0.01)

    return set_variables


def test_rank_0_says_what_the_environment_lacks(environment: Any, tmp_path: Path) -> None:
    environment(RANK="0", WORLD_SIZE="4")
    with pytest.raises(SeveralProcesses, match=r"WORLD_SIZE is 4.*\n.*no MASTER_ADDR and no MASTER_PORT.*\n.*torchrun"):
        Run(out=tmp_path / "run", device="cpu", watch=False)
    assert not (tmp_path / "run").exists()


def test_other_ranks_end_without_a_word(environment: Any, capsys: pytest.CaptureFixture[str]) -> None:
    environment(RANK="3", WORLD_SIZE="4")
    with pytest.raises(SystemExit) as ended:
        Run(device="cpu", watch=False)
    assert ended.value.code == 1
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("variables", [{"RANK": "0", "WORLD_SIZE": "1"}, {"RANK": "", "WORLD_SIZE": "many"}])
def test_one_process_of_a_launcher_is_one_process(environment: Any, variables: dict[str, str]) -> None:
    environment(**variables)
    with Run(device="cpu", watch=False, max_steps=1) as run:
        assert list(run.steps()) == [0]
        assert (run.rank, run.world_size, run.is_main_process) == (0, 1, True)


def test_ddp_needs_a_launcher(environment: Any) -> None:
    environment()
    for strategy in ("ddp", "fsdp"):
        with pytest.raises(BadSettings, match=rf'strategy is "{strategy}".*\n.*\n.*torchrun --nproc-per-node N'):
            Run(device="cpu", watch=False, strategy=strategy)
    with pytest.raises(BadSettings, match='strategy must be "auto", "ddp" or "fsdp"'):
        Run(device="cpu", watch=False, strategy="zero")


def test_weights_that_are_not_contiguous_become_those_of_rank_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "broadcast", lambda whole, source, group: whole.fill_(3.0))
    strategy: Any = object.__new__(DataParallel)
    strategy.rank, strategy._group, strategy._heartbeat = 1, None, SimpleNamespace(begin=lambda: None)
    model: Any = torch.nn.Conv2d(2, 4, 3)
    model.to(memory_format=torch.channels_last)
    assert not model.weight.is_contiguous()
    strategy.begin([model], resumed=True)
    assert bool((model.weight == 3).all() and (model.bias == 3).all())
